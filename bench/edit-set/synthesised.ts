import { readdirSync } from "node:fs"
import { extname, join } from "node:path"
import { indentUnit } from "../../src/tools/edit/indentation.ts"
import { splitLines } from "../../src/tools/edit/text.ts"
import type { Random } from "./random.ts"
import { type RealEdit, realEdits } from "./real-edit.ts"
import { textOf } from "./sources.ts"

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
const maxLines = 3_000
const maxLineLength = 200

/**
 * Edits made up of real code: in files of the packages in the directory, not of caches beside them, real lines are changed
 * for others of the same file.
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
  return lines.length > 20 && lines.length <= maxLines && lines.every((line) => line.length <= maxLineLength)
}

/** The lines with a few of them, in one place, added, taken away, replaced, renamed or put one level deeper. */
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

/** The lines as a whole as deep as the one given. */
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

/** What the file goes one level deeper by. */
function levelOf(lines: readonly string[]): string {
  if (lines.some((line) => line.startsWith("\t"))) return "\t"
  return " ".repeat(indentUnit(splitLines(lines.join("\n"))) ?? 2)
}

function indentOf(line: string): string {
  return /^[ \t]*/.exec(line)?.[0] ?? ""
}
