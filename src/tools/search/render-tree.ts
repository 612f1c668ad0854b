import { readlink } from "node:fs/promises"
import { join } from "node:path"
import { showName } from "../../files/show-name.ts"
import type { WalkEntry } from "../../files/walk.ts"
import { systemCode } from "../../util/errors.ts"

/**
 * The entries `shown` as lines indented by depth, below the directory they lie in. Where a directory holds more of
 * `all` than is shown, a line says how many.
 */
export async function renderTree(
  root: string,
  shown: readonly WalkEntry[],
  all: readonly WalkEntry[],
): Promise<string> {
  const children = Map.groupBy(shown, ({ parent }) => parent)
  const counts = new Map<string, number>()
  for (const { parent } of all) counts.set(parent, (counts.get(parent) ?? 0) + 1)

  async function lines(directory: string, indent: string): Promise<string[]> {
    const entries = children.get(directory) ?? []
    const result: string[] = []
    for (const entry of entries) {
      result.push(indent + (await label(root, entry)))
      if (entry.kind === "directory") result.push(...(await lines(entry.path, `${indent}  `)))
    }
    const hidden = (counts.get(directory) ?? 0) - entries.length
    if (hidden > 0) result.push(`${indent}… ${hidden} more`)
    return result
  }

  return (await lines("", "  ")).join("\n")
}

async function label(root: string, entry: WalkEntry): Promise<string> {
  if (entry.kind === "directory") return showName(`${entry.name}/`)
  if (entry.kind !== "link") return showName(entry.name)
  return `${showName(entry.name)} -> ${showName(await target(join(root, entry.path)))}`
}

/** Where a link leads; it may have gone away since it was listed. */
async function target(link: string): Promise<string> {
  try {
    return await readlink(link)
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return "?"
  }
}
