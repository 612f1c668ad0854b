import { mkdirSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { wholeName } from "../../config/shown-name.ts"
import { errorMessage, systemCode, UsageError } from "../../util/errors.ts"
import { isInside, realPath } from "../../util/paths.ts"

/** Throws `UsageError` if a symbolic link in the project makes the directory resolve to a path outside the project. */
export function assertInside(directory: string, worktree: string): void {
  if (isInside(realPath(directory), realPath(worktree))) return
  throw new UsageError(
    `${wholeName(directory)} resolves to a path outside this project. Nothing was written.`,
  )
}

/** Creates a file and its parent directories. Throws `UsageError` if the file exists or cannot be written. */
export function writeNewFile(file: string, content: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content, { flag: "wx" })
  } catch (error) {
    const reason = systemCode(error) === "EEXIST" ? "it already exists" : errorMessage(error)
    throw new UsageError(`${wholeName(file)} was not written: ${reason}.`, error)
  }
}
