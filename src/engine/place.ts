import { resolve } from "node:path"
import { findWorktree } from "../config/location.ts"
import { errorMessage } from "../util/errors.ts"
import { defaultDataDirectory } from "./data-directory.ts"
import type { TackleOptions } from "./options.ts"

/** Where an engine works, and with what environment. Paths absolute. */
export interface EnginePlace {
  directory: string
  worktree: string
  dataDirectory: string
  environment: Readonly<Record<string, string | undefined>>
  /** Hears of what stops nothing. */
  onProblem(message: string, error: unknown): void
}

/** As the options say, with their defaults. */
export function placeOf(given: TackleOptions): EnginePlace {
  const { environment = process.env } = given
  const directory = resolve(given.directory)
  return {
    directory,
    worktree: resolve(given.worktree ?? findWorktree(directory)),
    dataDirectory: resolve(given.dataDirectory ?? defaultDataDirectory(environment)),
    environment,
    onProblem:
      given.onProblem ?? ((message, error) => console.error(`tackle: ${message}: ${errorMessage(error)}`)),
  }
}
