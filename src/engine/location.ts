import { resolve } from "node:path"
import { findWorktree } from "../config/location.ts"
import { errorMessage } from "../util/errors.ts"
import { type DataPaths, dataPaths, defaultDataDirectory } from "./data-directory.ts"
import type { TackleOptions } from "./options.ts"

/** Directories and environment of an engine. All paths are absolute. */
export interface EngineLocation {
  directory: string
  worktree: string
  dataDirectory: string
  data: DataPaths
  environment: Readonly<Record<string, string | undefined>>
  /** Receives problems that do not stop the engine. */
  onProblem(message: string, error: unknown): void
}

/** Returns the location that the options describe. Applies the defaults. */
export function locationOf(given: TackleOptions): EngineLocation {
  const { environment = process.env } = given
  const directory = resolve(given.directory)
  const dataDirectory = resolve(given.dataDirectory ?? defaultDataDirectory(environment))
  return {
    directory,
    worktree: resolve(given.worktree ?? findWorktree(directory)),
    dataDirectory,
    data: dataPaths(dataDirectory),
    environment,
    onProblem:
      given.onProblem ?? ((message, error) => console.error(`tackle: ${message}: ${errorMessage(error)}`)),
  }
}
