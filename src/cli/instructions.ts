import { globSync } from "node:fs"
import { open } from "node:fs/promises"
import { basename } from "node:path"
import { wholeName } from "../config/shown-name.ts"
import { errorMessage } from "../util/errors.ts"
import { displayPath, isInside, realPath } from "../util/paths.ts"

/** Longest text that one instruction file may add to the system prompt, in bytes. */
const maxBytes = 64 * 1024

/** Texts for the system prompt: files that were found, and what the config names. */
export interface InstructionSources {
  /** Absolute paths, the nearest last. */
  found: readonly string[]
  /** The config's `instructions`: absolute paths, patterns and addresses. They follow what was found. */
  named: readonly string[]
}

/**
 * The texts, each once and headed by its path. One that cannot be read is told and left out; addresses are not fetched.
 * A project that is not `trusted` cannot have other files of the person sent to the model by putting links to them among
 * its own.
 */
export async function readInstructions(
  { found, named }: InstructionSources,
  { worktree, trusted }: { worktree: string; trusted: boolean },
  warn: (message: string) => void,
): Promise<string[]> {
  const texts = new Map<string, string>()
  const paths = named.flatMap((entry) => {
    if (!/^https?:/.test(entry)) return expand(entry)
    warn(`instructions: ${wholeName(entry)} is not fetched; name a file.`)
    return []
  })
  for (const path of [...found, ...paths]) {
    try {
      const real = realPath(path)
      if (texts.has(real)) continue
      const fault = trusted ? undefined : faultOfLink({ path, real, worktree })
      if (fault !== undefined) {
        warn(`instructions: ${wholeName(path)} ${fault}, which is not trusted; it is left out.`)
        continue
      }
      const text = await readStart(real)
      if (text !== "") texts.set(real, `Instructions from ${displayPath(path, worktree)}:\n${text}`)
    } catch (error) {
      warn(`instructions: ${wholeName(path)} cannot be read: ${errorMessage(error)}`)
    }
  }
  return [...texts.values()]
}

/** Why a project must not send this text: it would be another file of the person's, or one with secrets. */
function faultOfLink({ path, real, worktree }: { path: string; real: string; worktree: string }) {
  if (!isInside(path, worktree)) return undefined
  if (!isInside(real, realPath(worktree))) return "leads out of this project"
  return /\.(md|mdc|markdown|txt)$/i.test(real)
    ? undefined
    : `leads to ${wholeName(basename(real))} of this project`
}

/** The text, or its first {@link maxBytes} with a note. */
async function readStart(path: string): Promise<string> {
  const file = await open(path)
  try {
    const { size } = await file.stat()
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(size, maxBytes)), 0)
    // A character that the limit cuts is left out, not garbled.
    const text = new TextDecoder().decode(buffer.subarray(0, bytesRead), { stream: true }).trim()
    if (size <= maxBytes) return text
    return `${text}\n(Cut here: these are the first ${maxBytes} of ${size} bytes. Read the file for the rest.)`
  } finally {
    await file.close()
  }
}

function expand(entry: string): string[] {
  return /[*?[{]/.test(entry) ? globSync(entry).sort() : [entry]
}
