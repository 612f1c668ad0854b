import { globSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { wholeName } from "../config/shown-name.ts"
import { errorMessage } from "../util/errors.ts"
import { displayPath, isInside, realPath } from "../util/paths.ts"

/** Longest text that one instruction file may add to the system prompt, in bytes. */
const maxBytes = 64 * 1024

/**
 * The texts of the config's `instructions`: absolute paths and patterns. One that cannot be read is told and left out;
 * addresses are not fetched. A project that is not `trusted` cannot have other files of the person sent to the model by
 * putting links to them among its own.
 */
export async function readInstructions(
  entries: readonly string[],
  { worktree, trusted }: { worktree: string; trusted: boolean },
  warn: (message: string) => void,
): Promise<string[]> {
  const texts: string[] = []
  for (const entry of entries) {
    if (/^https?:/.test(entry)) {
      warn(`instructions: ${wholeName(entry)} is not fetched; name a file.`)
      continue
    }
    for (const path of expand(entry)) {
      try {
        if (!trusted && leadsOut(path, worktree)) {
          warn(
            `instructions: ${wholeName(path)} leads out of this project, which is not trusted; it is left out.`,
          )
          continue
        }
        const text = await readFile(path, "utf8")
        texts.push(`Instructions from ${displayPath(path, worktree)}:\n${text.slice(0, maxBytes).trim()}`)
      } catch (error) {
        warn(`instructions: ${wholeName(path)} cannot be read: ${errorMessage(error)}`)
      }
    }
  }
  return texts
}

function leadsOut(path: string, worktree: string): boolean {
  return isInside(path, worktree) && !isInside(realPath(path), realPath(worktree))
}

function expand(entry: string): string[] {
  return /[*?[{]/.test(entry) ? globSync(entry).sort() : [entry]
}
