import { type Dirent, readdirSync, statSync } from "node:fs"

/** Sorted by name. Empty for what is no directory or cannot be read: nothing can be loaded from there either. */
export function entriesOf(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
  } catch {
    return []
  }
}

/** True for a regular file, links followed. False also for what cannot be looked at, such as a loop of links. */
export function isFile(path: string): boolean {
  return lookAt(path)?.isFile() === true
}

/** The same for a directory. */
export function isDirectory(path: string): boolean {
  return lookAt(path)?.isDirectory() === true
}

function lookAt(path: string) {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}
