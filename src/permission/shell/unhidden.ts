import { readFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { systemCode } from "../../util/errors.ts"
import { isInside } from "../../util/paths.ts"
import { wildcardMatch } from "../../util/wildcard.ts"
import type { GivenOption } from "./arguments.ts"

/**
 * Patterns over the files that ripgrep is told to search by name: those it takes although they are hidden. As
 * {@link isUnhidden} takes them.
 */
export function unhiddenByOptions(options: readonly GivenOption[]): string[] {
  return options.flatMap(({ name, value }) => {
    const text = value?.text ?? ""
    if (globOptions.has(name)) return text.startsWith("!") ? [] : [overPaths(text)]
    return typeOptions.has(name) && typesWithSecrets.has(text) ? ["*"] : []
  })
}

const globOptions = new Set(["-g", "--glob", "--iglob"])
const typeOptions = new Set(["-t", "--type"])
/** Types of ripgrep (14.1, `--type-list`) with `.env` among their files; `all` is every type. */
const typesWithSecrets = new Set(["sh", "all"])

/** Files whose lines with a `!` in front take hidden files in. */
export const ignoreFiles: readonly string[] = [".gitignore", ".ignore", ".rgignore"]

/** Patterns over what the ignore files of a directory take in again although it is hidden. */
export async function unhiddenIn(
  directory: string,
  names: readonly string[] = ignoreFiles,
): Promise<string[]> {
  const found: string[] = []
  for (const name of names) {
    const text = await readFile(join(directory, name), "utf8").catch(ifUnreadable)
    for (const [, glob = ""] of text.matchAll(/^!(.+?)\s*$/gm)) found.push(overPaths(glob))
  }
  return found
}

/** The same of all directories above one, up to the root of the worktree. */
export async function unhiddenAbove(directory: string, worktree: string): Promise<string[]> {
  const found: string[] = await unhiddenIn(worktree, [".git/info/exclude"])
  for (let above = dirname(directory); isInside(above, worktree); above = dirname(above))
    found.push(...(await unhiddenIn(above)))
  return found
}

/** True where one of the patterns takes the file or directory in. It may say so too often, and never too rarely. */
export function isUnhidden(path: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => wildcardMatch(path.toLowerCase(), pattern))
}

/** A glob as a wildcard over absolute paths, wherever it is anchored. */
function overPaths(glob: string): string {
  const wide = glob
    .replace(/\{.*\}/s, "*")
    .replace(/\[.*\]/s, "*")
    .replaceAll(/\\(.)/gs, "$1")
  return `*/${wide.replace(/^\/+/, "").replace(/\/+$/, "").replaceAll("**/", "*").toLowerCase()}`
}

function ifUnreadable(error: unknown): string {
  // What is not there or cannot be read takes nothing in.
  if (systemCode(error) === undefined) throw error
  return ""
}
