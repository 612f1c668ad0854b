import type { Action, Rule } from "../schema/permission.ts"
import { errorMessage } from "../util/errors.ts"
import { displayPath, isInside } from "../util/paths.ts"
import { ConfigError, type Position, type Problem } from "./errors.ts"
import type { Location } from "./location.ts"
import type { ConfigEntry, ObjectNode } from "./node.ts"
import { readSmallFile } from "./small-file.ts"

/** The used parts of the settings of Claude Code and Codex, whose formats differ from a config file. */
export interface ForeignSettings {
  /**
   * Rules that can only make verdicts stricter. Together, they apply to all calls to which the original rules apply in
   * the other program.
   */
  rules: Rule[]
  /** Names of the servers in `.mcp.json` that the settings disable. */
  disabledServers: string[]
  /** Rules and limits that Tackle does not understand. */
  problems: Problem[]
  warnings: Problem[]
  /** One line for each file that contains settings that Tackle does not use. */
  unused: string[]
}

/** Adds rules that a setting at `position` defines. */
export function addRules(
  { rules }: ForeignSettings,
  added: readonly Pick<Rule, "permission" | "pattern">[],
  { action, position: { file, line } }: { action: Action; position: Position },
): void {
  rules.push(...added.map((rule) => ({ ...rule, action, source: { file, line } })))
}

/** A settings file to read. */
export interface ForeignFile {
  path: string
  location: Location
  found: ForeignSettings
  parse(text: string, path: string): Promise<ObjectNode>
}

/**
 * Reads a settings file, if it exists. Passes each top-level entry to `readEntry`, which returns descriptions of unused
 * settings. A file that cannot be read or parsed is a problem, because it may contain rules.
 */
export async function readForeignFile(
  { path, location, found, parse }: ForeignFile,
  readEntry: (entry: ConfigEntry, tree: ObjectNode) => string[],
): Promise<void> {
  try {
    const file = readSmallFile(path)
    if (file === undefined) return
    const tree = await parse(file.text, path)
    const unused = tree.entries.flatMap((entry) => readEntry(entry, tree))
    if (unused.length > 0) found.unused.push(`${shownPath(path, location)}: ${unused.join(", ")}`)
  } catch (error) {
    found.problems.push(...readProblems(path, error))
  }
}

/** Returns the problems of a file that cannot be read or parsed. */
export function readProblems(path: string, error: unknown): readonly Problem[] {
  if (error instanceof ConfigError) return error.problems
  const text = `the file may contain rules, but cannot be read: ${errorMessage(error)}.`
  return [{ position: { file: path, line: 1, column: 1 }, text }]
}

/** Formats the path of a settings file. */
export function shownPath(path: string, { home, worktree }: Location): string {
  return isInside(path, worktree) ? displayPath(path, worktree) : path.replace(`${home}/`, "~/")
}
