import { globSync } from "node:fs"
import { open } from "node:fs/promises"
import { basename, dirname, join, resolve } from "node:path"
import { instructionFinder } from "../../config/instructions.ts"
import type { Location } from "../../config/location.ts"
import { wholeName } from "../../config/shown-name.ts"
import type { FoundInstructions } from "../../tool/context.ts"
import { errorMessage } from "../../util/errors.ts"
import { isFile } from "../../util/file-system.ts"
import { displayPath, homeDirectory, isInside, realPath } from "../../util/paths.ts"

/** Maximum bytes that an instruction file, or a file that it imports, adds to the system prompt. */
const maxBytes = 64 * 1024

/** Instruction files that were found, and files that the config specifies. */
export interface InstructionSources {
  /** Absolute paths of the files that were found, nearest to the working directory last. */
  found: readonly string[]
  /** Value of `instructions` in the config: absolute paths, patterns and URLs. They follow the `found` files. */
  named: readonly string[]
}

/**
 * Returns the text of each file once, with its path as a heading. Skips and reports files that cannot be read, URLs,
 * and links that would let an untrusted project send the user's other files to the model.
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

/** Maximum bytes of an instruction file, or of an import, that is sent together with a file that the model reads. */
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
 * Reads one instruction file. Returns undefined for a file that is empty or unreadable, or that must not be sent.
 * Reports the file unless it is empty.
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
        `instructions: ${wholeName(path)} is ignored, because the project is not trusted and this file ${problem}.`,
      )
      return undefined
    }
    const text = await readStart(real, maxBytes)
    if (text === "") return undefined
    const shown = displayPath(path, worktree)
    const imports = isClaudeFile(path)
      ? await readImports({ path: real, text }, { worktree, trusted, maxBytes, warn })
      : []
    return { path: real, text: [`Instructions from ${shown}:\n${text}`, ...imports].join("\n\n") }
  } catch (error) {
    warn(`instructions: ${wholeName(path)} cannot be read: ${errorMessage(error)}`)
    return undefined
  }
}

function isClaudeFile(path: string): boolean {
  return /^CLAUDE(\.local)?\.md$/.test(basename(path))
}

/** Maximum depth of imports, as in Claude Code. */
const maxImportDepth = 5

/** Maximum number of files that one instruction file imports. */
const maxImports = 50

/**
 * Returns the texts of the files that an instruction file imports with `@path`, directly or indirectly, each once. A
 * project file can import only project files, and only Markdown and plain text if the project is not trusted. Skips and
 * reports other files, and files that may contain secrets. Imports beyond the limits are skipped without a report.
 */
async function readImports(
  start: { path: string; text: string },
  {
    worktree,
    trusted,
    maxBytes,
    warn,
  }: { worktree: string; trusted: boolean; maxBytes: number; warn(message: string): void },
): Promise<string[]> {
  const root = realPath(worktree)
  const bound = isInside(start.path, root) ? root : undefined
  const known = new Set([start.path])
  const texts: string[] = []
  let level = [start]
  for (let depth = 0; depth < maxImportDepth && level.length > 0; depth += 1) {
    const next: typeof level = []
    for (const importer of level) {
      for (const name of importsIn(importer.text)) {
        const path = name.startsWith("~/")
          ? join(homeDirectory(), name.slice(2))
          : resolve(dirname(importer.path), name)
        // A word with `@` is not an import unless the file exists.
        if (!isFile(path)) continue
        const real = realPath(path)
        if (known.has(real) || texts.length >= maxImports) continue
        known.add(real)
        const problem = importProblem(real, { bound, trusted })
        if (problem !== undefined) {
          warn(
            `instructions: @${wholeName(name)} in ${wholeName(importer.path)} is ignored, because ${problem}.`,
          )
          continue
        }
        const text = await readStart(real, maxBytes)
        texts.push(`Imported from ${displayPath(real, root)}:\n${text}`)
        next.push({ path: real, text })
      }
    }
    level = next
  }
  return texts
}

/** Returns the paths after `@` at the start of a word, outside code. */
function importsIn(text: string): string[] {
  const prose = text.replaceAll(/^(```|~~~)[\s\S]*?^\1/gm, "").replaceAll(/(`+)[^`]*?\1/g, "")
  return [...prose.matchAll(/(?<=^|\s)@((?:\\ |[^\s`@])+)/g)].map(([, path = ""]) =>
    path.replaceAll("\\ ", " ").replace(/[.,;:!?)]+$/, ""),
  )
}

function importProblem(
  real: string,
  { bound, trusted }: { bound: string | undefined; trusted: boolean },
): string | undefined {
  if (bound !== undefined && !isInside(real, bound)) return "the file is outside the project"
  if (bound !== undefined && !trusted && !isText(real))
    return "the project is not trusted, and the file is not Markdown or plain text"
  const mayBeSecret =
    /(^|\/)(\.env(\.|$)|\.(ssh|aws|gnupg|git|netrc|npmrc|pypirc)(\/|$))|\.(env|pem|key)$/i.test(real)
  return mayBeSecret ? "the file may contain secrets" : undefined
}

/** Returns why a file in an untrusted project must not be sent to the model, or undefined if it may be sent. */
function linkProblem({ path, real, worktree }: { path: string; real: string; worktree: string }) {
  if (!isInside(path, worktree)) return undefined
  if (!isInside(real, realPath(worktree))) return "is a link to a path outside the project"
  if (isText(real)) return undefined
  const target = basename(real)
  if (target === basename(path)) return "is not a Markdown or text file"
  return `is a link to ${wholeName(target)}, which may contain secrets`
}

function isText(path: string): boolean {
  return /\.(md|mdc|markdown|txt)$/i.test(path)
}

/** Returns a file's text. Text that is longer than `maxBytes` is cut and ends with a note. */
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
