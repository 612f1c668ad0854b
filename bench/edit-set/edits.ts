import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { extname, join } from "node:path"
import { structuredPatch } from "diff"
import { indentUnit } from "../../src/tools/edit/indentation.ts"
import { indentOf, splitLines } from "../../src/tools/edit/text.ts"

/** A seeded pseudorandom number generator. */
export interface Random {
  /** Returns an integer from 0 to `limit - 1`. */
  below(limit: number): number
  /** Returns a random item. Throws for an empty list. */
  pick<T>(items: readonly T[]): T
}

/** Creates a generator with the mulberry32 algorithm. */
export function createRandom(seed: number): Random {
  let state = seed | 0
  const below = (limit: number) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }
  return {
    below,
    pick(items) {
      const item = items[below(items.length)]
      if (item === undefined) throw new Error("Cannot pick from an empty list.")
      return item
    },
  }
}

/** A line of a change, without its line ending. */
export interface ChangedLine {
  kind: "kept" | "old" | "new"
  text: string
}

/**
 * One change to a file, with context lines. The file consists of `before`, the kept and old lines, and `after`. Each
 * line in `before` and `after` ends with a line break, except possibly the last line in the file.
 */
export interface RealEdit {
  path: string
  before: string
  lines: ChangedLine[]
  after: string
}

/** Maximum number of lines in a change. Longer changes are not typical edits. */
const maxLines = 40
/** Number of lines to keep on each side of a change. */
const maxAround = 150

/** Returns the changes between two versions of a file, each with one to three context lines. */
function realEdits(path: string, before: string, after: string, random: Random): RealEdit[] {
  const patch = structuredPatch(path, path, before, after, "", "", { context: 1 + random.below(3) })
  return patch.hunks.flatMap((hunk) => {
    const lines = hunk.lines.filter((line) => !line.startsWith("\\")).map(changedLine)
    const oldLines = lines.filter((line) => line.kind !== "new").length
    if (lines.length > maxLines || oldLines === 0) return []
    const all = before.split(/(?<=\n)/)
    const start = hunk.oldStart - 1
    const end = start + oldLines
    return {
      path,
      before: all.slice(Math.max(0, start - maxAround), start).join(""),
      lines,
      after: all.slice(end, end + maxAround).join(""),
    }
  })
}

/** Returns the lines before or after the change. */
export function linesOf(edit: RealEdit, side: "old" | "new"): string[] {
  return edit.lines.filter((line) => line.kind === "kept" || line.kind === side).map((line) => line.text)
}

function changedLine(line: string): ChangedLine {
  const kind = line.startsWith("-") ? "old" : line.startsWith("+") ? "new" : "kept"
  return { kind, text: line.slice(1) }
}

const maxFileBytes = 200_000

/** Returns the changes in all commits of a repository. */
export function editsOfHistory(repository: string, random: Random): RealEdit[] {
  const git = (...args: string[]) =>
    execFileSync("git", ["-C", repository, ...args], { encoding: "utf8", maxBuffer: 1e9 })
  const log = git("log", "--no-merges", "--diff-filter=M", "--name-only", "--format=%x01%H")
  return log.split("\u0001").flatMap((entry) => {
    const [commit, ...paths] = entry.split("\n").filter((line) => line !== "")
    return paths.flatMap((path) =>
      editsBetween(path, git("show", `${commit}^:${path}`), git("show", `${commit}:${path}`), random),
    )
  })
}

function editsBetween(path: string, before: string, after: string, random: Random): RealEdit[] {
  const usable = [before, after].every((text) => text.length <= maxFileBytes && !/[\0\r]/.test(text))
  return usable ? realEdits(path, before, after, random) : []
}

/**
 * Error codes that mean that the path is not a file. A package directory may be named like a file, such as
 * `decimal.js`.
 */
const nothingToRead: ReadonlySet<string> = new Set(["ENOENT", "EISDIR"])

/** Returns the text of a file, or undefined if the file is missing or not UTF-8. */
function textOf(path: string): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(path))
  } catch (error) {
    if (error instanceof TypeError || nothingToRead.has(String((error as NodeJS.ErrnoException).code)))
      return undefined
    throw error
  }
}

const extensions = new Set([
  ".js",
  ".mjs",
  ".cjs",
  ".ts",
  ".tsx",
  ".py",
  ".go",
  ".rs",
  ".css",
  ".json",
  ".md",
  ".sh",
])
const maxFileLines = 3_000
const maxLineLength = 200

/**
 * Returns synthetic edits to the packages in a directory. Each edit replaces lines in a file with other lines from the
 * same file.
 */
export function editsOfCode(directory: string, count: number, random: Random): RealEdit[] {
  const paths = readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((path) => extensions.has(extname(path)) && !/\.min\.|\.d\.ts$|^\./.test(path))
    .sort()
  const edits: RealEdit[] = []
  for (let tries = 0; edits.length < count && paths.length > 0 && tries < count * 10; tries++) {
    const path = random.pick(paths)
    const text = textOf(join(directory, path))
    if (text === undefined || !isUsable(text)) continue
    const after = changed(text.split("\n"), random)
    edits.push(...realEdits(path, text, after.join("\n"), random))
  }
  return edits
}

function isUsable(text: string): boolean {
  if (/[\0\r]/.test(text)) return false
  const lines = text.split("\n")
  return (
    lines.length > 20 && lines.length <= maxFileLines && lines.every((line) => line.length <= maxLineLength)
  )
}

/** Adds, removes, replaces, renames or indents a few lines at a random position. */
function changed(lines: readonly string[], random: Random): string[] {
  const start = random.below(lines.length - 10)
  const old = lines.slice(start, start + 1 + random.below(6))
  const source = random.below(lines.length - 10)
  const other = reindented(lines.slice(source, source + 1 + random.below(5)), old[0] ?? "")
  const fresh = random.pick([
    () => other,
    () => [...old, ...other],
    () => [...other, ...old],
    () => [],
    () => renamed(old, random),
    () => renamed(old, random),
    () => [
      `${indentOf(old[0] ?? "")}if (ready) {`,
      ...old.map((line) => (line ? levelOf(lines) + line : line)),
      `${indentOf(old[0] ?? "")}}`,
    ],
  ])()
  return [...lines.slice(0, start), ...fresh, ...lines.slice(start + old.length)]
}

/** Indents the lines like the line `like`. */
function reindented(lines: readonly string[], like: string): string[] {
  const own = indentOf(lines[0] ?? "")
  return lines.map((line) =>
    line.startsWith(own) && line.trim() !== "" ? indentOf(like) + line.slice(own.length) : line,
  )
}

function renamed(lines: readonly string[], random: Random): string[] {
  const words = lines.join("\n").match(/[A-Za-z_]\w{2,}/g) ?? []
  if (words.length === 0) return [...lines, "done"]
  const word = random.pick(words)
  return lines.map((line) => line.replaceAll(word, `${word}Of`))
}

/** Returns the text of one indentation level in the file. */
function levelOf(lines: readonly string[]): string {
  if (lines.some((line) => line.startsWith("\t"))) return "\t"
  return " ".repeat(indentUnit(splitLines(lines.join("\n"))) ?? 2)
}

const sourceExtensions = new Set([".js", ".mjs", ".cjs", ".ts", ".mts", ".json", ".md"])

/**
 * Returns the changes between two releases of each package that is installed in two versions. Counts a change that
 * appears in several builds once.
 */
export function editsOfVersions(directory: string, random: Random): RealEdit[] {
  const edits = packagesIn(directory).flatMap(([older, newer]) =>
    filesIn(older).flatMap((path) => {
      const [before, after] = [textOf(join(older, path)), textOf(join(newer, path))]
      if (before === undefined || after === undefined || !isReadable(before) || !isReadable(after)) return []
      return realEdits(path, before, after, random)
    }),
  )
  const keyed = edits.map((edit) => [changeOf(edit), edit] as const)
  return [...new Map(keyed).values()]
}

/** Returns the directories of the two lowest versions of each package that has several versions, older first. */
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
    .filter((path) => sourceExtensions.has(extname(path)) && !/\.min\.|node_modules/.test(path))
    .sort()
}

function isReadable(text: string): boolean {
  return !/[\0\r]/.test(text) && text.split("\n").every((line) => line.length <= maxLineLength)
}

function changeOf(edit: RealEdit): string {
  return JSON.stringify([linesOf(edit, "old"), linesOf(edit, "new")])
}
