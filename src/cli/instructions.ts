import { globSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { errorMessage } from "../util/errors.ts"
import { displayPath } from "../util/paths.ts"

/** Longest text that one instruction file may add to the system prompt, in bytes. */
const maxBytes = 64 * 1024

/**
 * The texts of the config's `instructions`: absolute paths and patterns. One that cannot be read is told and left out;
 * addresses are not fetched.
 */
export async function readInstructions(
  entries: readonly string[],
  worktree: string,
  warn: (message: string) => void,
): Promise<string[]> {
  const texts: string[] = []
  for (const entry of entries) {
    if (/^https?:/.test(entry)) {
      warn(`instructions: ${entry} is not fetched; name a file.`)
      continue
    }
    for (const path of expand(entry)) {
      try {
        const text = await readFile(path, "utf8")
        texts.push(`Instructions from ${displayPath(path, worktree)}:\n${text.slice(0, maxBytes).trim()}`)
      } catch (error) {
        warn(`instructions: ${path} cannot be read: ${errorMessage(error)}`)
      }
    }
  }
  return texts
}

function expand(entry: string): string[] {
  return /[*?[{]/.test(entry) ? globSync(entry).sort() : [entry]
}
