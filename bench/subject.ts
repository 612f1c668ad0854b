import type { ScriptedCall } from "../src/testing/reply.ts"
import type { WireFormat } from "../src/testing/wire-format.ts"
import type { Service } from "./service.ts"

/** The directories and the model server of one run. */
export interface Place {
  /** Project directory. */
  directory: string
  /** Home directory, which is private to the subject and kept between the runs of a row. */
  home: string
  /** Base URL of the model server, with `/v1`. */
  url: string
  port: number
  prompt: string
}

export interface Launch {
  command: string
  args: string[]
  /** Environment variables in addition to those that every subject has. */
  env?: Record<string, string>
}

/** Calls in the scripts, with a program's tool names and arguments. Paths are absolute. */
export interface Tools {
  read(path: string): ScriptedCall
  bash(command: string): ScriptedCall
  write(path: string, content: string): ScriptedCall
}

/** A program to measure. */
export interface Subject {
  name: string
  launch(place: Place): Launch
  /** Returns the arguments that print the version or the help. */
  about?: (flag: "--version" | "--help") => Launch
  /** Returns the arguments that open the interactive terminal, with a stored session if given. */
  terminal?: (place: Place, session?: string) => Launch
  tools: Tools
  /** Wire format of the model API, if the model server does not serve it by default. */
  format?: WireFormat
  /** Starts the program's HTTP server in the project `home`, with the model server at `url`. */
  serve?: (place: Pick<Place, "home" | "url">) => Promise<Service>
  /** Writes the program's configuration before the first run. */
  prepare?: (place: Place) => Promise<void>
  /**
   * Returns the position of a request in the script: the number of earlier answers with calls, or undefined for a
   * request outside the conversation, such as a request for a title. By default, requests are read as chat completions.
   */
  turn?: (body: Record<string, unknown>) => number | undefined
  /** True if the program only launches another process that does the work. */
  launcher?: boolean
}
