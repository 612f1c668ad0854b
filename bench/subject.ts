import type { ScriptedCall } from "../src/testing/reply.ts"
import type { WireFormat } from "../src/testing/wire-format.ts"

/** Directories and server of one run. */
export interface Place {
  /** The project directory. */
  directory: string
  /** Private to the subject and kept between the runs of a row. */
  home: string
  /** The model server's base URL, with `/v1`. */
  url: string
  port: number
  prompt: string
}

export interface Launch {
  command: string
  args: string[]
  /** The environment in addition to that of every subject. */
  env?: Record<string, string>
}

/** The three calls of the scripts with the tool names and arguments of a program. Paths are absolute. */
export interface Tools {
  read(path: string): ScriptedCall
  bash(command: string): ScriptedCall
  write(path: string, content: string): ScriptedCall
}

/** A program to measure. */
export interface Subject {
  name: string
  launch(place: Place): Launch
  /** The arguments that print the version and the help. */
  about?: (flag: "--version" | "--help") => Launch
  tools: Tools
  /** The protocol, if not chat completions. */
  format?: WireFormat
  /** Writes its configuration before the first run. */
  prepare?: (place: Place) => Promise<void>
  /**
   * Returns the position of a request in the script: the number of earlier answers with calls. Undefined for a request
   * outside the conversation, such as one for a title. Default: as in chat completions.
   */
  turn?: (body: Record<string, unknown>) => number | undefined
  /** True if the launcher starts another process that does the work. */
  launcher?: boolean
}
