import type * as z from "zod"
import type { ToolContext } from "./context.ts"
import type { ToolResult } from "./result.ts"

/** What a tool does at its worst. Read by scheduling, sandbox and plan mode; a third party's word loosens nothing. */
export type Access = "read" | "write" | "execute" | "network" | "meta"

/** Where to cut the model's copy of the output. Whichever limit comes first. */
export interface OutputLimits {
  maxLines: number
  maxBytes: number
  /** `head` keeps the beginning, `head-tail` both ends. */
  keep: "head" | "head-tail"
}

/** Whom a tool is being prepared for, so that descriptions can differ. */
export interface InitContext {
  agent?: { name: string }
}

/** A tool, ready to run. */
export interface Definition<P extends z.ZodType = z.ZodType> {
  /** For the model: what it does, when to use it, when not. */
  description: string
  parameters: P
  /** Sent to the model in place of what `parameters` come to, for tools whose JSON Schema is given from outside. */
  jsonSchema?: Readonly<Record<string, unknown>>
  /** Gets the parsed arguments. Throws with a text that tells the model what to do next. */
  execute(args: z.output<P>, ctx: ToolContext): Promise<ToolResult>
  /** Replaces the whole message that the model reads when its arguments do not fit. */
  formatValidationError?(error: z.ZodError): string
  /** Offered only to models of these providers. */
  providers?: readonly string[]
  access?: Access
  /**
   * It changes nothing before its first `ctx.ask` was answered. A call that is cut off before is then known to have had
   * no effect. Of a third party's tool it is not believed.
   */
  asksFirst?: boolean
  /** Never beside another call of the same step. */
  serial?: boolean
  /** Milliseconds after which the call is aborted. Default: none. */
  timeout?: number
  /** What to ask leave for before `execute`, for tools that do not ask by themselves. */
  ask?(args: z.output<P>): { patterns: string[]; always?: string[] }
  /** Differs from the default limits of the output. */
  limits?: Partial<OutputLimits>
}

/** A capability by its id. Inert: nothing happens before `init`, and each `init` gives a fresh definition. */
export interface Info<P extends z.ZodType = z.ZodType> {
  readonly id: string
  init(ctx?: InitContext): Promise<Definition<P>>
}

/**
 * The one way to make a tool: from a definition, or from a function that makes one for the agent at hand.
 * Throws `TypeError` for an id that providers would not take (letters, digits, `_` and `-`, at most 64).
 */
export function define<P extends z.ZodType>(
  id: string,
  init: Definition<P> | ((ctx?: InitContext) => Promise<Definition<P>> | Definition<P>),
): Info<P> {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(id)) {
    throw new TypeError(`Invalid tool id "${id}": use 1 to 64 letters, digits, "_" or "-".`)
  }
  return {
    id,
    async init(ctx) {
      return typeof init === "function" ? await init(ctx) : { ...init }
    },
  }
}

/** True for anything that looks like a tool made by {@link define}, also by another copy of this module. */
export function isTool(value: unknown): value is Info {
  if (typeof value !== "object" || value === null) return false
  return "id" in value && typeof value.id === "string" && "init" in value && typeof value.init === "function"
}
