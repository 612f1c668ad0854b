import type { ScriptedCall } from "../src/testing/reply.ts"
import type { WireFormat } from "../src/testing/wire-format.ts"

/** Where and against what one run works. */
export interface Place {
  /** The project. */
  directory: string
  /** Private to the subject, and kept from one run of a row to the next. */
  home: string
  /** The model server's base URL, with `/v1`. */
  url: string
  port: number
  prompt: string
}

export interface Launch {
  command: string
  args: string[]
  /** The whole environment, besides what every subject gets. */
  env?: Record<string, string>
}

/** The three calls of the scripts, each by its name and arguments in one program. Paths are absolute. */
export interface Tools {
  read(path: string): ScriptedCall
  bash(command: string): ScriptedCall
  write(path: string, content: string): ScriptedCall
}

/** A program that is measured. */
export interface Subject {
  name: string
  launch(place: Place): Launch
  /** What shows the version, and what the help. */
  about?: (flag: "--version" | "--help") => Launch
  tools: Tools
  /** The protocol, where it is not chat completions. */
  format?: WireFormat
  /** Writes the files of its configuration before the first run. */
  prepare?: (place: Place) => Promise<void>
  /**
   * How many answers with calls a request looks back on: the place of its own answer in the script. Undefined for a
   * request beside the conversation, such as one for a title. Default: as in chat completions.
   */
  turn?: (body: Record<string, unknown>) => number | undefined
  /** True where the launcher starts another process that does the work. */
  launcher?: boolean
}
