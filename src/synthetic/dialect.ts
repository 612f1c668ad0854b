import type { JsonSchema } from "../util/json-schema.ts"
import type { Reading, Source } from "./source.ts"

/** A tool of a request. */
export interface SyntheticTool {
  name: string
  description?: string | undefined
  inputSchema: JsonSchema
}

/** The call formats that a model can be asked to use. */
export const dialectNames = ["hermes", "json-fence", "llama", "mistral", "pythonic", "xml"] as const
/** One of the {@link dialectNames}. */
export type DialectName = (typeof dialectNames)[number]

/** A call that was read. `input` is JSON; `repaired` describes the repairs that were needed. */
export interface ReadCall {
  tool: string
  input: string
  repaired?: string | undefined
}

/** A call that could not be read. */
export interface MalformedCall {
  /** The text that the model wrote. */
  text: string
  /** The problem, for the model: completes a sentence that begins with "it". */
  reason: string
  /** The tool, if it could be read. */
  tool?: string | undefined
  /** The complete call, if only its tool is not offered. */
  unknown?: ReadCall | undefined
  /** True if the answer reached its token limit within the call. */
  cut?: boolean
}

/** Receives what a reader finds. `start` may precede a call or a malformed call. */
export interface CallSink {
  /** A call of this tool begins. Its input follows in pieces through `delta` and complete through `call`. */
  start(tool: string): void
  delta(text: string): void
  call(call: ReadCall): void
  malformed(call: MalformedCall): void
}

/** The input of a reader. The source is positioned after the opening. */
export interface ReadContext {
  source: Source
  sink: CallSink
  tools: ReadonlyMap<string, SyntheticTool>
  /** Offset of the opening in the source. */
  start: number
  /** True if only white space precedes the opening on its line. */
  atLineStart: boolean
  /** True after the first call of this answer. */
  afterCall: boolean
  /** True if only white space and marks separate the last call from the opening. */
  followsCall: boolean
}

/** The beginning of a call, and the reader for the rest. */
export interface Opening {
  literal: string
  /**
   * True for a mark that does not occur in ordinary text. It counts in every dialect. Other openings count only in
   * their own dialect and at the beginning of a line.
   */
  explicit: boolean
  /**
   * Reads to the end of the calls. `text`: there was no call, and the sink received nothing. `mark`: the opening only
   * surrounds calls and is dropped.
   */
  read(context: ReadContext): Reading<"calls" | "text" | "mark">
}

/** A format for calls. */
export interface Dialect {
  name: DialectName
  openings: readonly Opening[]
  /** Returns the opening that consists of the tool's name. */
  toolOpenings?: (tool: SyntheticTool) => Opening
  /** Describes the format to the model. An example from `write` follows. */
  instructions: string
  /** Returns a call in this format. `input` is a JSON object. */
  write(tool: string, input: Record<string, unknown>): string
}
