import { opendir } from "node:fs/promises"
import { join, relative } from "node:path"
import { showName } from "../../files/show-name.ts"
import { throwIfAborted } from "../../util/abort.ts"
import { errorMessage } from "../../util/errors.ts"

/** So many files are named: a skill is told of its own in its text, this is for what it forgot. */
const maxFiles = 50
/** So many entries are looked at, whatever lies there. */
const maxEntries = 1_000

/** The files of a skill beside its `SKILL.md`, in a line for the model. */
export async function listSkillFiles(directory: string, signal: AbortSignal): Promise<string> {
  try {
    const files = await walk(directory, signal)
    if (files.length === 0) return "Files: none"
    const shown = files.slice(0, maxFiles).sort()
    const more = files.length > maxFiles ? ", and more" : ""
    return `Files: ${shown.map(showName).join(", ")}${more}`
  } catch (error) {
    throwIfAborted(signal)
    return `Cannot list its files: ${errorMessage(error)}`
  }
}

/** One level after the other, so that what lies near is named first. */
async function walk(root: string, signal: AbortSignal): Promise<string[]> {
  const files: string[] = []
  const directories = [root]
  let left = maxEntries
  for (const directory of directories) {
    for await (const entry of await opendir(directory)) {
      throwIfAborted(signal)
      left -= 1
      if (left < 0 || files.length > maxFiles) return files
      const path = join(directory, entry.name)
      if (entry.isDirectory() && entry.name !== ".git" && entry.name !== "node_modules")
        directories.push(path)
      if (entry.isFile() && path !== join(root, "SKILL.md")) files.push(relative(root, path))
    }
  }
  return files
}
