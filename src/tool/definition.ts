import type * as z from "zod"
import type { Rule } from "../schema/permission.ts"
import type { Attachment } from "../schema/tool-state.ts"
import type { ToolContext } from "./context.ts"

/**
 * The strongest effect that a tool can have. Determines which calls can run in parallel, and whether a call that is
 * interrupted may have had an effect. Ignored for third-party tools, which are treated as `execute`.
 */
export type Access = "read" | "write" | "execute" | "network" | "meta"

/** Limits for the output that the model reads. Whichever limit is reached first applies. */
export interface OutputLimits {
  maxLines: number
  maxBytes: number
  /** `head` keeps the beginning. `head-tail` keeps the beginning and the end. */
  keep: "head" | "head-tail"
}

/** The agent for which a tool is prepared. Descriptions can differ between agents. */
export interface InitContext {
  agent?: InitAgent
}

/** The properties of an agent that a tool can read while it is prepared for the agent. */
export interface InitAgent {
  name: string
  mode: "primary" | "subagent" | "all"
  /**
   * The rules that apply to the agent, with the effective action for each pattern. The last matching rule decides. If a
   * tool reads these rules, the tool is prepared again when the rules change.
   */
  readonly permission: readonly Pick<Rule, "permission" | "pattern" | "action">[]
}

/** A tool that is ready to run. */
export interface Definition<P extends z.ZodType = z.ZodType> {
  /** Text for the model: what the tool does, when to use it, and when not to use it. */
  description: string
  parameters: P
  /** JSON Schema to send to the model instead of the JSON Schema of `parameters`. */
  jsonSchema?: Readonly<Record<string, unknown>>
  /**
   * Runs the tool with the parsed arguments. Error messages tell the model what to do next. If the definition comes
   * from the `init` method of a tool that `define` created, this function also validates the arguments and truncates
   * the output, for calls outside an engine.
   */
  execute(args: z.output<P>, ctx: ToolContext): Promise<ToolResult>
  /** Returns a message that replaces the default message about invalid arguments. */
  formatValidationError?(error: z.ZodError): string
  /** Ids of the providers whose models are offered the tool. Default: all providers. */
  providers?: readonly string[]
  access?: Access
  /**
   * Whether the tool changes nothing before its first `ctx.ask` resolves. If true, a call that is interrupted before
   * then has no effect. Ignored for third-party tools.
   */
  asksFirst?: boolean
  /** Whether the tool must not run in parallel with another call in the same step. */
  serial?: boolean
  /**
   * Returns true if the call only reports a state that changes by itself, such as the output of a job. Repeating such
   * a call does not count as a loop as long as the results differ. Ignored for third-party tools.
   */
  polls?(args: z.output<P>): boolean
  /**
   * Time in milliseconds after which the call is aborted, not counting the time spent waiting for the user. Default: no
   * limit.
   */
  timeout?: number
  /**
   * Returns the patterns for the permission request before each call to a third-party tool, and the patterns that the
   * reply "always" allows. Default: the arguments as JSON, and `*`. Ignored for built-in tools.
   */
  ask?(args: z.output<P>): { patterns: string[]; always?: string[] }
  /** Output limits that override the defaults. */
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
  /** Agent that takes over the session. Ignored for tools that are not built in. */
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
 * Key of the property that contains the author's function, on an `execute` function that also validates and truncates.
 * The key is the same in every copy of this module.
 */
export const authored = Symbol.for("tackle.tool.execute")

/** Returns the function that the author wrote, for callers that validate and truncate themselves. */
export function authorsExecute(definition: Definition): Definition["execute"] {
  const { execute } = definition
  return authored in execute ? (execute[authored] as typeof execute) : execute.bind(definition)
}
