import type * as z from "zod"
import type { Attachment } from "../schema/tool-state.ts"
import type { ToolContext } from "./context.ts"

/** The most a tool can do. Read by the scheduler, the sandbox and plan mode; declarations of third parties loosen nothing. */
export type Access = "read" | "write" | "execute" | "network" | "meta"

/** Limits of the output that the model reads. The first limit reached applies. */
export interface OutputLimits {
  maxLines: number
  maxBytes: number
  /** `head` keeps the beginning, `head-tail` beginning and end. */
  keep: "head" | "head-tail"
}

/** The agent that a tool is prepared for, so that descriptions can differ. */
export interface InitContext {
  agent?: { name: string }
}

/** A tool that is ready to run. */
export interface Definition<P extends z.ZodType = z.ZodType> {
  /** For the model: what the tool does, when to use it, and when not. */
  description: string
  parameters: P
  /** Replaces the JSON Schema of `parameters` in requests, for tools that bring their own JSON Schema. */
  jsonSchema?: Readonly<Record<string, unknown>>
  /** Receives the parsed arguments. Errors tell the model what to do next. */
  execute(args: z.output<P>, ctx: ToolContext): Promise<ToolResult>
  /** Replaces the whole message about invalid arguments. */
  formatValidationError?(error: z.ZodError): string
  /** Offered only to models of these providers. */
  providers?: readonly string[]
  access?: Access
  /**
   * Changes nothing before its first `ctx.ask` resolves: a call that is cut off earlier had no effect. Ignored for
   * third-party tools.
   */
  asksFirst?: boolean
  /** Never runs in parallel with another call of the same step. */
  serial?: boolean
  /** Milliseconds after which the call is aborted. Default: none. */
  timeout?: number
  /** Permission to request before `execute`, for tools that do not ask themselves. */
  ask?(args: z.output<P>): { patterns: string[]; always?: string[] }
  /** Overrides the default output limits. */
  limits?: Partial<OutputLimits>
}

/** Result of a call. */
export interface ToolResult {
  /** For the user: a short line, such as the path or the command. */
  title: string
  /** For the model. */
  output: string
  /** For programs and interfaces. With `truncated` set, the output is not truncated again. */
  metadata?: Record<string, unknown>
  attachments?: Attachment[]
  /** Hands the session over to another agent. Ignored unless the tool is built in. */
  handover?: Handover
}

/** The agent that continues from the next step on, and a message from the engine to it. */
export interface Handover {
  /** Name of the agent. */
  agent: string
  message: string
}

/** A tool by its id. Nothing happens before `init`, and each `init` returns a new definition. */
export interface Info<P extends z.ZodType = z.ZodType> {
  readonly id: string
  init(ctx?: InitContext): Promise<Definition<P>>
}

/**
 * Creates a tool from a definition, or from a function that returns a definition for an agent. Throws `TypeError` for an
 * id that providers reject (allowed: letters, digits, `_` and `-`, at most 64).
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

/** Returns true for a tool made by {@link define}, also by another copy of this module. */
export function isTool(value: unknown): value is Info {
  if (typeof value !== "object" || value === null) return false
  return "id" in value && typeof value.id === "string" && "init" in value && typeof value.init === "function"
}
