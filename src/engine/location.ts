import { statSync } from "node:fs"
import { resolve } from "node:path"
import { findWorktree } from "../config/location.ts"
import { errorMessage, UsageError } from "../util/errors.ts"
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

/**
 * Returns the location that the options describe. Applies the defaults. Throws `UsageError` if a directory does not
 * exist.
 */
export function locationOf(given: TackleOptions): EngineLocation {
  const { environment = process.env } = given
  const directory = existing("directory", given.directory)
  const dataDirectory = resolve(given.dataDirectory ?? defaultDataDirectory(environment))
  return {
    directory,
    worktree: existing("worktree", given.worktree ?? findWorktree(directory)),
    dataDirectory,
    data: dataPaths(dataDirectory),
    environment,
    onProblem:
      given.onProblem ?? ((message, error) => console.error(`tackle: ${message}: ${errorMessage(error)}`)),
  }
}

/** Returns the absolute path of a directory that an option names. */
function existing(option: "directory" | "worktree", path: unknown): string {
  if (typeof path !== "string" || path === "")
    throw new UsageError(`The option ${option} of createTackle must be the path of a directory.`)
  const absolute = resolve(path)
  if (!statSync(absolute, { throwIfNoEntry: false })?.isDirectory())
    throw new UsageError(`${absolute} is not a directory (option ${option} of createTackle).`)
  return absolute
}
