import { globSync } from "node:fs"
import { open } from "node:fs/promises"
import { basename } from "node:path"
import { instructionFinder } from "../../config/instructions.ts"
import type { Location } from "../../config/location.ts"
import { wholeName } from "../../config/shown-name.ts"
import type { FoundInstructions } from "../../tool/context.ts"
import { errorMessage } from "../../util/errors.ts"
import { displayPath, isInside, realPath } from "../../util/paths.ts"

/** Maximum bytes that one instruction file adds to the system prompt. */
const maxBytes = 64 * 1024

/** Instruction files that were found, and files that the config names. */
export interface InstructionSources {
  /** Absolute paths, nearest last. */
  found: readonly string[]
  /** `instructions` of the config: absolute paths, patterns and URLs. They follow the `found` files. */
  named: readonly string[]
}

/**
 * Returns the text of each file once, with its path as a heading. Skips and reports files that cannot be read. Does not
 * fetch URLs. Rejects links that would let an untrusted project send the user's other files to the model.
 */
export async function readInstructions(
  { found, named }: InstructionSources,
  { worktree, trusted }: { worktree: string; trusted: boolean },
  warn: (message: string) => void,
): Promise<string[]> {
  const texts = new Map<string, string>()
  const paths = named.flatMap((entry) => {
    if (!isAddress(entry)) return expand(entry)
    warn(`instructions: ${wholeName(entry)} is ignored, because URLs are not fetched. Use a file instead.`)
    return []
  })
  for (const path of [...found, ...paths]) {
    const read = await readOne(path, { worktree, trusted, maxBytes }, warn)
    if (read && !texts.has(read.path)) texts.set(read.path, read.text)
  }
  return [...texts.values()]
}

/** Maximum bytes of an instruction file that is sent along with a file that the model reads. */
const maxNearBytes = 16 * 1024

/**
 * Returns a function that reads the instructions for a file in a subdirectory of the project. The rules of {@link
 * readInstructions} apply. See `TackleOptions.instructionsNear`.
 */
export function instructionsNear(
  location: Location,
  { trusted, named }: { trusted: boolean; named: readonly string[] },
  warn: (message: string) => void,
): (file: string) => Promise<FoundInstructions[]> {
  const findNear = instructionFinder(location)
  const said = new Set(named.filter((entry) => !isAddress(entry)).flatMap(expand))
  const project = { worktree: location.worktree, trusted, maxBytes: maxNearBytes }
  return async (file) => {
    const texts: FoundInstructions[] = []
    for (const path of findNear(file)) {
      const read = said.has(path) ? undefined : await readOne(path, project, warn)
      if (read) texts.push(read)
    }
    return texts
  }
}

/**
 * Reads one instruction file. Returns undefined for a file that is empty, is unreadable or must not be sent, and
 * reports the last two cases.
 */
async function readOne(
  path: string,
  { worktree, trusted, maxBytes }: { worktree: string; trusted: boolean; maxBytes: number },
  warn: (message: string) => void,
): Promise<FoundInstructions | undefined> {
  try {
    const real = realPath(path)
    const problem = trusted ? undefined : linkProblem({ path, real, worktree })
    if (problem !== undefined) {
      warn(
        `instructions: ${wholeName(path)} is ignored: the project is not trusted, and this file ${problem}.`,
      )
      return undefined
    }
    const text = await readStart(real, maxBytes)
    if (text === "") return undefined
    return { path: real, text: `Instructions from ${displayPath(path, worktree)}:\n${text}` }
  } catch (error) {
    warn(`instructions: ${wholeName(path)} cannot be read: ${errorMessage(error)}`)
    return undefined
  }
}

/** Returns why an untrusted project must not send this file: it is outside the project or may contain secrets. */
function linkProblem({ path, real, worktree }: { path: string; real: string; worktree: string }) {
  if (!isInside(path, worktree)) return undefined
  if (!isInside(real, realPath(worktree))) return "leads outside the project"
  return /\.(md|mdc|markdown|txt)$/i.test(real) ? undefined : `leads to ${wholeName(basename(real))}`
}

/** Returns the text of a file. A longer text is cut to `maxBytes` and ends with a note. */
async function readStart(path: string, maxBytes: number): Promise<string> {
  const file = await open(path)
  try {
    const { size } = await file.stat()
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(size, maxBytes)), 0)
    // With `stream`, the decoder drops a character that the limit splits.
    const text = new TextDecoder().decode(buffer.subarray(0, bytesRead), { stream: true }).trim()
    if (size <= maxBytes) return text
    return `${text}\n(Truncated to the first ${maxBytes} of ${size} bytes. Read the file to see the rest.)`
  } finally {
    await file.close()
  }
}

function isAddress(entry: string): boolean {
  return /^https?:/.test(entry)
}

function expand(entry: string): string[] {
  return /[*?[{]/.test(entry) ? globSync(entry).sort() : [entry]
}
