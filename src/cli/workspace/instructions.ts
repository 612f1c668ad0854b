import { globSync } from "node:fs"
import { open } from "node:fs/promises"
import { basename } from "node:path"
import { instructionFinder } from "../../config/instructions.ts"
import type { Location } from "../../config/location.ts"
import { wholeName } from "../../config/shown-name.ts"
import type { FoundInstructions } from "../../tool/context.ts"
import { errorMessage } from "../../util/errors.ts"
import { displayPath, isInside, realPath } from "../../util/paths.ts"

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
    if (!isAddress(entry)) return expand(entry)
    warn(`instructions: ${wholeName(entry)} is not fetched; name a file.`)
    return []
  })
  for (const path of [...found, ...paths]) {
    const read = await readOne(path, { worktree, trusted, maxBytes }, warn)
    if (read && !texts.has(read.path)) texts.set(read.path, read.text)
  }
  return [...texts.values()]
}

/** Longest text that comes with a file that is read, in bytes: it stands beside the file's own in one result. */
const maxNearBytes = 16 * 1024

/** Reads what holds for a file deeper in the project, by the same rules: see `TackleOptions.instructionsNear`. */
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

/** Undefined for one that is empty, cannot be read or must not be sent, which is told. */
async function readOne(
  path: string,
  { worktree, trusted, maxBytes }: { worktree: string; trusted: boolean; maxBytes: number },
  warn: (message: string) => void,
): Promise<FoundInstructions | undefined> {
  try {
    const real = realPath(path)
    const fault = trusted ? undefined : linkProblem({ path, real, worktree })
    if (fault !== undefined) {
      warn(`instructions: ${wholeName(path)} ${fault}, which is not trusted; it is left out.`)
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

/** Why a project must not send this text: it would be another file of the person's, or one with secrets. */
function linkProblem({ path, real, worktree }: { path: string; real: string; worktree: string }) {
  if (!isInside(path, worktree)) return undefined
  if (!isInside(real, realPath(worktree))) return "leads out of this project"
  return /\.(md|mdc|markdown|txt)$/i.test(real)
    ? undefined
    : `leads to ${wholeName(basename(real))} of this project`
}

/** The text, or its first bytes with a note. */
async function readStart(path: string, maxBytes: number): Promise<string> {
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

function isAddress(entry: string): boolean {
  return /^https?:/.test(entry)
}

function expand(entry: string): string[] {
  return /[*?[{]/.test(entry) ? globSync(entry).sort() : [entry]
}
