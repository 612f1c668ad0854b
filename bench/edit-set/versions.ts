import { existsSync, readdirSync } from "node:fs"
import { extname, join } from "node:path"
import type { Random } from "./random.ts"
import { linesOf, type RealEdit, realEdits } from "./real-edit.ts"
import { textOf } from "./sources.ts"

const extensions = new Set([".js", ".mjs", ".cjs", ".ts", ".mts", ".json", ".md"])
/** In characters: longer lines were made by a program. */
const maxLineLength = 200

/**
 * What the authors of packages changed from one release to another: of every package that is installed in two versions,
 * the files that both have. The same change in two builds of one source counts once.
 */
export function editsOfVersions(directory: string, random: Random): RealEdit[] {
  const edits = packagesIn(directory).flatMap(([older, newer]) =>
    filesIn(older).flatMap((path) => {
      const [before, after] = [textOf(join(older, path)), textOf(join(newer, path))]
      if (before === undefined || after === undefined || !isUsable(before) || !isUsable(after)) return []
      return realEdits(path, before, after, random)
    }),
  )
  const keyed = edits.map((edit) => [changeOf(edit), edit] as const)
  return [...new Map(keyed).values()]
}

/** The two lowest versions of every package that has several, as directories, the older first. */
function packagesIn(directory: string): [older: string, newer: string][] {
  const found = new Map<string, Map<string, string>>()
  for (const path of packageDirectories(directory)) {
    const { name, version } = JSON.parse(textOf(join(path, "package.json")) ?? "{}")
    if (typeof name !== "string" || typeof version !== "string") continue
    const versions = found.get(name) ?? new Map<string, string>()
    found.set(name, versions.set(version, versions.get(version) ?? path))
  }
  return [...found.values()].flatMap((versions) => {
    const [older, newer] = [...versions].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }))
    return older && newer ? [[older[1], newer[1]] as [string, string]] : []
  })
}

function packageDirectories(modules: string): string[] {
  return directoriesIn(modules).flatMap((path) => {
    if (!existsSync(join(path, "package.json"))) return packageDirectories(path)
    const inner = join(path, "node_modules")
    return existsSync(inner) ? [path, ...packageDirectories(inner)] : [path]
  })
}

function directoriesIn(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
    .map((entry) => join(directory, entry.name))
    .sort()
}

function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((path) => extensions.has(extname(path)) && !/\.min\.|node_modules/.test(path))
    .sort()
}

function isUsable(text: string): boolean {
  return !/[\0\r]/.test(text) && text.split("\n").every((line) => line.length <= maxLineLength)
}

function changeOf(edit: RealEdit): string {
  return JSON.stringify([linesOf(edit, "old"), linesOf(edit, "new")])
}
