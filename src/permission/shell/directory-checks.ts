import { statSync } from "node:fs"
import { basename, normalize } from "node:path"
import type { Rule } from "../../schema/permission.ts"
import { fileChecks, type ResolvedScope, relativeToWorktree } from "../path-checks.ts"
import { judge, type Policy } from "../policy.ts"
import { protectionOf } from "../protected-files.ts"
import type { Check } from "../request.ts"
import { concerns } from "../rules.ts"
import { type CommandPlace, tableName } from "./command-forms.ts"
import { filesNeedingLeave, followingLinks } from "./directory-files.ts"
import { candidates, placesOf } from "./named-paths.ts"
import { fileOperands, isReader, takesText } from "./operands.ts"
import { findProgram } from "./program-table.ts"
import { followsLinks, readsDirectories } from "./read-only.ts"
import type { PlannedCommand } from "./shell-plan.ts"
import { literalWord, type Word } from "./words.ts"

/**
 * The reads of a command that was allowed by a rule, not proved, in the directories that it names: of those that it
 * sweeps the files that need leave, of all others the ones that a rule denies. A directory that is not there is judged
 * by what may come to lie in it.
 */
export async function sweepChecks(
  command: PlannedCommand,
  directories: readonly string[] | undefined,
  place: CommandPlace,
  policy: Policy,
): Promise<Check[]> {
  const [program, ...words] = command.argv
  const name = program ? tableName(program, place) : ""
  const entry = findProgram(basename(name)) ?? {}
  const sweeps = readsDirectories(entry, words)
  if (!directories || takesText(name) || (isReader(name) && !sweeps)) return []
  if (!sweeps && deniesOf(policy, "read").length === 0) return []

  const operands = fileOperands(name, words).filter((word) => !word.dynamic && !word.glob)
  const named = operands.flatMap((word) => pathsOf(word, directories, place))
  const here = sweeps && entry.directories?.own && named.every((path) => kindOf(path) === undefined)
  const roots = here ? [...named, ...directories] : named
  const needsLeave = (path: string) => needsSome(path, place, policy, sweeps)
  const follows = sweeps && followsLinks(entry, words)
  const reading = { hidden: true, needsLeave, ...(follows ? followingLinks(needsLeave, place) : {}) }
  const checks: Check[] = []
  for (const root of new Set(roots)) {
    const kind = kindOf(root)
    if (kind === "file") continue
    if (kind === undefined) {
      checks.push(...possibleBelow(root, place, policy))
      continue
    }
    // A directory too large to look through is left to the rules for the command, unless something must not be read.
    const found = await filesNeedingLeave(root, reading)
    if (!found && sweeps) checks.push(...possibleBelow(root, place, policy))
    checks.push(...(found ?? []).flatMap((path) => fileChecks("read", path, place)))
  }
  return checks
}

/** The rules that deny reading or changing something. */
export function deniesOf({ layers, ceiling = [], bound }: Policy, access: "read" | "edit"): Rule[] {
  const all = [...layers.flatMap((layer) => layer.rules), ...ceiling]
  const own = all.filter((rule) => rule.action === "deny" && concerns(rule, access))
  return bound ? [...own, ...deniesOf(bound, access)] : own
}

function pathsOf(word: Word, directories: readonly string[], place: CommandPlace): string[] {
  return candidates(word, place.home).flatMap((text) => placesOf(text, literalWord(text), directories) ?? [])
}

function needsSome(path: string, place: ResolvedScope, policy: Policy, anyLeave: boolean): boolean {
  const relative = relativeToWorktree(path, place)
  const { action } = judge(policy, "read", [relative, path])
  if (action === "deny") return true
  return anyLeave && (action !== "allow" || protectionOf(relative, "read") !== undefined)
}

/**
 * The check for a directory with contents that are not known: a deny for a path in it makes the command ask. In the root
 * of the worktree every deny counts.
 */
export function possibleBelow(
  directory: string,
  place: ResolvedScope,
  policy: Policy,
  access: "read" | "edit" = "read",
): Check[] {
  const relative = relativeToWorktree(normalize(directory), place).replace(/\/$/, "")
  const root = relative === "" || relative === "."
  const isAbout = ({ pattern }: Rule) =>
    root || [pattern, pattern.replace(/^(?:\*+\/)+/, "")].some((text) => text.startsWith(`${relative}/`))
  if (!deniesOf(policy, access).some(isAbout)) return []
  const span = root ? "*" : `${relative}/*`
  return [
    {
      permission: access,
      pattern: span,
      forms: [relative, directory],
      options: { span, spanRefusals: ["deny"] },
      reason: access === "read" ? "it reads a whole directory" : "it may change a whole directory",
    },
  ]
}

/** What a path leads to. Undefined where it does not exist. */
export function kindOf(path: string): "file" | "directory" | undefined {
  const found = statSync(path, { throwIfNoEntry: false })
  return found && (found.isDirectory() ? "directory" : "file")
}
