import type * as z from "zod"
import type { Attachment } from "../schema/tool-state.ts"
import type { ToolContext } from "./context.ts"

/**
 * The most that a tool can do. The scheduler, the sandbox and plan mode use it. The declaration of a third-party tool
 * does not relax any restriction.
 */
export type Access = "read" | "write" | "execute" | "network" | "meta"

/** Limits of the output that the model reads. The limit that is reached first applies. */
export interface OutputLimits {
  maxLines: number
  maxBytes: number
  /** `head` keeps the beginning. `head-tail` keeps the beginning and the end. */
  keep: "head" | "head-tail"
}

/** The agent for which a tool is prepared. Descriptions can differ between agents. */
export interface InitContext {
  agent?: { name: string }
}

/** A tool that is ready to run. */
export interface Definition<P extends z.ZodType = z.ZodType> {
  /** Text for the model: what the tool does, when to use it, and when not to. */
  description: string
  parameters: P
  /** Replaces the JSON Schema of `parameters` in requests, for tools that have their own JSON Schema. */
  jsonSchema?: Readonly<Record<string, unknown>>
  /** Runs the tool with the parsed arguments. Error messages tell the model what to do next. */
  execute(args: z.output<P>, ctx: ToolContext): Promise<ToolResult>
  /** Returns a message that replaces the default message about invalid arguments. */
  formatValidationError?(error: z.ZodError): string
  /** Providers whose models are offered the tool. Default: all providers. */
  providers?: readonly string[]
  access?: Access
  /**
   * True if the tool changes nothing before its first `ctx.ask` resolves. A call that is interrupted earlier then has
   * no effect. Ignored for third-party tools.
   */
  asksFirst?: boolean
  /** True if the tool must not run in parallel with another call of the same step. */
  serial?: boolean
  /**
   * Returns true if the call only reports a state that others change. Such a call can be repeated as long as its results
   * differ. Ignored for third-party tools.
   */
  polls?(args: z.output<P>): boolean
  /** Time in milliseconds after which the call is aborted. Default: no limit. */
  timeout?: number
  /** Returns the permission to request before `execute`, for tools that do not call `ctx.ask`. */
  ask?(args: z.output<P>): { patterns: string[]; always?: string[] }
  /** Overrides the default output limits. */
  limits?: Partial<OutputLimits>
}

/** Result of a call. */
export interface ToolResult {
  /** A short line for the user, such as the path or the command. */
  title: string
  /** Output for the model. */
  output: string
  /** Data for programs and user interfaces. If `truncated` is set, the output is not truncated again. */
  metadata?: Record<string, unknown>
  attachments?: Attachment[]
  /** Hands the session over to another agent. Ignored for tools that are not built in. */
  handover?: Handover
}

/** The agent that continues from the next step on, and the engine's message to it. */
export interface Handover {
  /** Name of the agent. */
  agent: string
  message: string
}

/** A tool with its id. The tool does nothing before `init`, which returns a new definition each time. */
export interface Info<P extends z.ZodType = z.ZodType> {
  readonly id: string
  /** The id that the author chose, if the tool is offered under another id. Calls and rules can use both. */
  readonly alias?: string
  init(ctx?: InitContext): Promise<Definition<P>>
}

/**
 * Creates a tool from a definition, or from a function that returns a definition for an agent. Throws `TypeError` if
 * providers would reject the id (allowed: 1 to 64 letters, digits, `_` or `-`).
 */
export function define<P extends z.ZodType>(
  id: string,
  init: Definition<P> | ((ctx?: InitContext) => Promise<Definition<P>> | Definition<P>),
): Info<P> {
  if (!isToolId(id)) {
    throw new TypeError(`Invalid tool id "${id}": use 1 to 64 letters, digits, "_" or "-".`)
  }
  return {
    id,
    async init(ctx) {
      return typeof init === "function" ? await init(ctx) : { ...init }
    },
  }
}

/** Returns true for an id that providers accept. */
export function isToolId(id: string): boolean {
  return /^[A-Za-z0-9_-]{1,64}$/.test(id)
}

/** Returns true for a tool created by {@link define}, even in another copy of this module. */
export function isTool(value: unknown): value is Info {
  if (typeof value !== "object" || value === null) return false
  return "id" in value && typeof value.id === "string" && "init" in value && typeof value.init === "function"
}
