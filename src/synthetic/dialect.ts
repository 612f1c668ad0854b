import type { JsonSchema } from "../util/json-schema.ts"
import type { Reading, Source } from "./source.ts"

/** A tool that a request offers to the model. */
export interface SyntheticTool {
  name: string
  description?: string | undefined
  inputSchema: JsonSchema
}

/** The call formats that a model can be asked to use. */
export const dialectNames = ["hermes", "json-fence", "llama", "mistral", "pythonic", "xml"] as const
/** One of the {@link dialectNames}. */
export type DialectName = (typeof dialectNames)[number]

/** A call that was read successfully. `input` is JSON text. `repaired` describes the repairs that were needed. */
export interface ReadCall {
  tool: string
  input: string
  repaired?: string | undefined
}

/** A call that could not be read, or whose tool is not offered. */
export interface MalformedCall {
  /** The text that the model wrote. */
  text: string
  /** Problem to report to the model. Completes a sentence that begins with "it". */
  reason: string
  /** Name of the tool, if it could be read. */
  tool?: string | undefined
  /** The complete call, if its only problem is that its tool is not offered. */
  unknown?: ReadCall | undefined
  /** True if the answer reached its token limit within the call. */
  cut?: boolean
}

/** Receives the calls that a reader finds. A `start` may come before a call or a malformed call. */
export interface CallSink {
  /**
   * Begins a call to this tool. Afterwards, `delta` receives the input in pieces, and `call` receives the complete
   * input.
   */
  start(tool: string): void
  delta(text: string): void
  call(call: ReadCall): void
  malformed(call: MalformedCall): void
}

/** Input for a reader. The source's position is directly after the opening. */
export interface ReadContext {
  source: Source
  sink: CallSink
  tools: ReadonlyMap<string, SyntheticTool>
  /** Offset of the opening in the source. */
  start: number
  /** True if only white space precedes the opening on its line. */
  atLineStart: boolean
  /** True after the first call in this answer. */
  afterCall: boolean
  /** True if only white space and marks are between the previous call and the opening. */
  followsCall: boolean
}

/** Text that begins a call, and the reader for the rest of the call. */
export interface Opening {
  literal: string
  /**
   * True for a mark that does not occur in ordinary text. Such an opening is recognized anywhere and in every dialect.
   * Any other opening is recognized only at the beginning of a line and, except for `Action:` and `Observation:`, only
   * in its own dialect.
   */
  explicit: boolean
  /**
   * Reads to the end of the calls. Returns `text` if no call follows the opening. In this case, the sink has received
   * nothing. Returns `mark` if the opening only surrounds calls and must be dropped.
   */
  read(context: ReadContext): Reading<"calls" | "text" | "mark">
}

/** A format for calls. */
export interface Dialect {
  name: DialectName
  openings: readonly Opening[]
  /** Returns an opening that contains the tool's name. */
  toolOpenings?: (tool: SyntheticTool) => Opening
  /** Describes the format to the model. The prompt contains this text, followed by an example from `write`. */
  instructions: string
  /** Returns a call in this format. `input` is a JSON object. */
  write(tool: string, input: Record<string, unknown>): string
}
