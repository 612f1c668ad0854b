import { glob } from "node:fs/promises"

/** More matches than this are not looked at one by one. */
const maxMatches = 300

/**
 * The files that a pattern of names stands for in a directory, absolute or relative to it as the pattern is; undefined
 * where there are too many. More generous than a shell: names that start with a dot are among them.
 */
export async function globFiles(pattern: string, directory: string): Promise<string[] | undefined> {
  const found: string[] = []
  for await (const name of glob(pattern, { cwd: directory })) {
    if (found.length === maxMatches) return undefined
    found.push(name)
  }
  return found
}
