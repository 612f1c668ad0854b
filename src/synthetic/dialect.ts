import type { JsonSchema } from "../util/json-schema.ts"
import type { Reading, Source } from "./source.ts"

/** A tool as a request offers it. */
export interface SyntheticTool {
  name: string
  description?: string | undefined
  inputSchema: JsonSchema
}

/** The ways to write a call that a model can be told. */
export const dialectNames = ["hermes", "json-fence", "llama", "mistral", "pythonic", "xml"] as const
/** One of the {@link dialectNames}. */
export type DialectName = (typeof dialectNames)[number]

/** A call that was read. `input` is JSON; `repaired` says in words what was mended to get there. */
export interface ReadCall {
  tool: string
  input: string
  repaired?: string | undefined
}

/** A text that was meant as a call and could not be read. */
export interface MalformedCall {
  /** As the model wrote it. */
  text: string
  /** What is wrong with it, for the model: a sentence's end after "it ". */
  reason: string
  /** The tool, where that much was clear. */
  tool?: string | undefined
  /** The call that this is, whole but for its tool, which is not offered. */
  unknown?: ReadCall | undefined
  /** The answer reached its limit within the call. */
  cut?: boolean
}

/** Who is told what a reader finds. Each call and each malformed call may be announced by `start`. */
export interface CallSink {
  /** A call of this tool has begun. Its input comes in pieces by `delta`, and whole by `call`. */
  start(tool: string): void
  delta(text: string): void
  call(call: ReadCall): void
  malformed(call: MalformedCall): void
}

/** What a reader works with. The source stands behind the opening. */
export interface ReadContext {
  source: Source
  sink: CallSink
  tools: ReadonlyMap<string, SyntheticTool>
  /** Where the opening stands in the source. */
  start: number
  /** Only white space stands before the opening on its line. */
  atLineStart: boolean
  /** A call was read before in this answer. */
  afterCall: boolean
  /** Nothing but white space and marks stand between the last call and the opening. */
  followsCall: boolean
}

/** What a call begins with, and how it goes on. */
export interface Opening {
  literal: string
  /**
   * A mark that nobody writes who means no call. It is understood whatever dialect the model was told; any other only
   * in its own dialect and at the beginning of a line.
   */
  explicit: boolean
  /**
   * Reads to the end of the call or calls. `text`: it was none after all, and the sink was told nothing. `mark`: it
   * stands around calls and says nothing, and is left out.
   */
  read(context: ReadContext): Reading<"calls" | "text" | "mark">
}

/** A way to write calls and results. */
export interface Dialect {
  name: DialectName
  openings: readonly Opening[]
  /** Openings that are names of the tools themselves. */
  toolOpenings?: (tool: SyntheticTool) => Opening
  /** Tells the model how a call is written. An example made by `write` follows. */
  instructions: string
  /** A call as the model is to write it. `input` is a JSON object. */
  write(tool: string, input: Record<string, unknown>): string
}
