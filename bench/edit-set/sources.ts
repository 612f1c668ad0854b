import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import type { Random } from "./random.ts"
import { type RealEdit, realEdits } from "./real-edit.ts"

const maxFileBytes = 200_000

/** The changes in a repository's history: every file that a commit modified. */
export function editsOfHistory(repository: string, random: Random): RealEdit[] {
  const git = (...args: string[]) =>
    execFileSync("git", ["-C", repository, ...args], { encoding: "utf8", maxBuffer: 1e9 })
  const log = git("log", "--no-merges", "--diff-filter=M", "--name-only", "--format=%x01%H")
  return log.split("\u0001").flatMap((entry) => {
    const [commit, ...paths] = entry.split("\n").filter((line) => line !== "")
    return paths.flatMap((path) =>
      editsBetween(path, git("show", `${commit}^:${path}`), git("show", `${commit}:${path}`), random),
    )
  })
}

function editsBetween(path: string, before: string, after: string, random: Random): RealEdit[] {
  const usable = [before, after].every((text) => text.length <= maxFileBytes && !/[\0\r]/.test(text))
  return usable ? realEdits(path, before, after, random) : []
}

/** A package may lie in a directory that is named like a file, such as `decimal.js`. */
const nothingToRead: ReadonlySet<string> = new Set(["ENOENT", "EISDIR"])

/** The text of a file; undefined where it has none, or is not UTF-8. */
export function textOf(path: string): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(path))
  } catch (error) {
    if (error instanceof TypeError || nothingToRead.has(String((error as NodeJS.ErrnoException).code)))
      return undefined
    throw error
  }
}
