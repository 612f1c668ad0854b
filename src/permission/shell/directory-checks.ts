import { existsSync, statSync } from "node:fs"
import { basename, join, normalize, relative, resolve } from "node:path"
import type { Rule } from "../../schema/permission.ts"
import { deniedName, fileChecks, type ResolvedScope, relativeToWorktree } from "../path-checks.ts"
import { deniesOf, judge, type Policy } from "../policy.ts"
import { protectionInHome, protectionOf } from "../protected-files.ts"
import type { Check } from "../request.ts"
import { type CommandScope, expandWord, tableName } from "./command-forms.ts"
import {
  filesNeedingPermission,
  followingLinks,
  type RecursiveReading,
  unhiddenAbove,
} from "./directory-files.ts"
import { trackedFiles } from "./git-repository.ts"
import {
  fileOperands,
  followsLinks,
  isReader,
  readsDirectories,
  takesText,
  type WholeReading,
} from "./operands.ts"
import { absolutePaths, candidates, globFiles } from "./paths-in-words.ts"
import { findProgram } from "./program-table.ts"
import { showsContents } from "./read-only-proof.ts"
import type { PlannedCommand } from "./shell-plan.ts"
import { literalWord, type Word } from "./words.ts"

/**
 * Returns `read` checks for the directories that a command names, for commands that are not proved to only read. For a
 * program that reads whole directories, each file that needs permission is checked. For other programs, only the files
 * that a rule denies are checked. A missing directory is judged by the files that it may contain later.
 */
export async function directoryChecks(
  command: PlannedCommand,
  directories: readonly string[] | undefined,
  scope: CommandScope,
  policy: Policy,
): Promise<Check[]> {
  const [program, ...words] = command.argv
  const name = program ? tableName(program, scope) : ""
  const entry = findProgram(basename(name)) ?? {}
  const readsAll = readsDirectories(entry, words)
  if (!directories || takesText(name) || (isReader(name) && !readsAll)) return []
  if (!readsAll && deniesOf(policy, "read").length === 0) return []

  const named = fileOperands(name, words)
    .filter((word) => !word.dynamic && !word.glob)
    .flatMap((word) => candidates(word, scope.home))
    .flatMap((text) => absolutePaths(text, literalWord(text), directories) ?? [])
  const ownToo = readsAll && entry.directories?.own && named.every((path) => kindOf(path) === undefined)
  const needsPermission = readsAll ? needsReadPermission(scope, policy) : isDenied(scope, policy)
  const follows = readsAll && followsLinks(entry, words)
  const reading: RecursiveReading = {
    hidden: true,
    needsPermission,
    listing: scope.listing,
    ...(follows && followingLinks(needsPermission, scope)),
  }
  const checks: Check[] = []
  for (const root of new Set(ownToo ? [...named, ...directories] : named)) {
    const kind = kindOf(root)
    if (kind === "file") continue
    const found =
      kind === undefined ? undefined : await filesNeedingPermission(...throughLinks(root, reading, scope))
    // If a program that reads whole directories finds too many entries, the command asks if a rule denies part of the
    // directory. For other programs, only the rules for the command apply.
    if (!found && (readsAll || kind === undefined)) checks.push(...possibleFilesBelow(root, scope, policy))
    checks.push(...(found ?? []).flatMap((path) => fileChecks("read", path, scope)))
  }
  return checks
}

/**
 * Returns checks for the files below the directories that a read-only command reads. Returns undefined if the files are
 * unknown.
 */
export async function wholeReadChecks(search: {
  /** The directories to read. If the list is empty, the command reads its working directory. */
  words: readonly Word[]
  reading: WholeReading
  directories: readonly string[] | undefined
  scope: CommandScope
  policy: Policy
}): Promise<Check[] | undefined> {
  const { directories, scope, policy } = search
  if (!directories) return undefined
  const { hidden, unhidden, followsLinks, selects, plainNames } = search.reading
  const needsPermission = needsReadPermission(scope, policy)
  const reading: RecursiveReading = {
    hidden,
    selects,
    plainNames,
    needsPermission,
    listing: scope.listing,
    ...(followsLinks && followingLinks(needsPermission, scope)),
  }
  const words = search.words.length > 0 ? search.words : [literalWord(".")]
  const checks: Check[] = []
  const roots = await Promise.all(words.map((word) => pathsOf(word, directories, scope)))
  if (roots.includes(undefined)) return undefined
  for (const root of roots.flatMap((paths) => paths ?? [])) {
    if (!existsSync(root)) checks.push(...possibleFilesBelow(root, scope, policy))
    if (unhidden) reading.unhidden = [...unhidden, ...unhiddenAbove(root, scope.realWorktree)]
    const found = await filesNeedingPermission(...throughLinks(root, reading, scope))
    if (!found) return undefined
    checks.push(...found.flatMap((path) => fileChecks("read", path, scope)))
  }
  return checks
}

/**
 * Returns a directory with links resolved, and a reading that judges each file by its resolved path and by its path as
 * written.
 */
function throughLinks(
  directory: string,
  reading: RecursiveReading,
  scope: ResolvedScope,
): [string, RecursiveReading] {
  const followed = scope.follow(directory)
  const written = resolve(directory)
  if ("problem" in followed || followed.real === written) return [directory, reading]
  const { real } = followed
  const needsPermission = (path: string) =>
    reading.needsPermission(path) || reading.needsPermission(join(written, relative(real, path)))
  return [real, { ...reading, needsPermission }]
}

/** Returns the absolute paths that a word can mean. Returns undefined if too many files match a glob. */
async function pathsOf(
  word: Word,
  directories: readonly string[],
  scope: CommandScope,
): Promise<string[] | undefined> {
  const text = expandWord(word, scope.home)
  if (!word.glob) return absolutePaths(text, word, directories) ?? []
  const found = await Promise.all(
    directories.map((directory) => globFiles(text, directory, { word, listing: scope.listing })),
  )
  if (found.includes(undefined)) return undefined
  return found.flatMap((files, at) => (files ?? []).map((file) => resolve(directories[at] ?? "/", file)))
}

/** Returns a predicate for files that cannot be read without asking. */
function needsReadPermission(scope: ResolvedScope, policy: Policy): (path: string) => boolean {
  return (path) => {
    const relative = relativeToWorktree(path, scope)
    return (
      protectionOf(relative, "read") !== undefined ||
      protectionInHome(path, scope.homes) !== undefined ||
      judge(policy, "read", [relative, path]).action !== "allow" ||
      deniedName(path, scope, policy) !== undefined
    )
  }
}

function isDenied(scope: ResolvedScope, policy: Policy): (path: string) => boolean {
  return (path) =>
    judge(policy, "read", [relativeToWorktree(path, scope), path]).action === "deny" ||
    deniedName(path, scope, policy) !== undefined
}

/**
 * Returns a check for a directory with unknown contents. The command asks if a rule denies a path in the directory. For
 * the root of the worktree, every deny rule counts.
 */
export function possibleFilesBelow(
  directory: string,
  scope: ResolvedScope,
  policy: Policy,
  access: "read" | "edit" = "read",
): Check[] {
  const relative = relativeToWorktree(normalize(directory), scope).replace(/\/$/, "")
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

/**
 * Returns whether a path is a file or a directory. Returns undefined if the path does not exist or the text cannot be a
 * path.
 */
export function kindOf(path: string): "file" | "directory" | undefined {
  try {
    return statSync(path).isDirectory() ? "directory" : "file"
  } catch {
    // No command can change a path that does not resolve, for example because of a zero byte or a cycle of links.
    return undefined
  }
}

/**
 * Returns checks for files that git may show although a rule denies reading them. The checks ask even if a rule allows
 * the command, because it is unknown which files git shows.
 */
export function deniedTrackedFiles(
  command: PlannedCommand,
  directories: readonly string[] | undefined,
  scope: CommandScope,
  policy: Policy,
): Check[] {
  const [program, ...words] = command.argv
  if (basename(program?.text ?? "") !== "git" || !showsContents(words)) return []
  const checks: Check[] = []
  for (const { root, paths } of trackedFiles(directories)) {
    if (!paths) checks.push(...possibleFilesBelow(root, scope, policy))
    const denied = paths?.find(
      (path) => judge(policy, "read", [relativeToWorktree(path, scope), path]).action === "deny",
    )
    if (denied === undefined) continue
    const span = relativeToWorktree(denied, scope)
    checks.push({
      permission: "read",
      pattern: span,
      forms: [],
      options: { span, spanRefusals: ["deny"] },
      reason: "git may show it",
    })
  }
  return checks
}

/**
 * Returns true if git tracks a file that needs permission to be read, or if the tracked files are unknown. Does not
 * cover files that exist only in past commits.
 */
export function mayShowProtectedFile(
  directories: readonly string[] | undefined,
  scope: CommandScope,
  policy: Policy,
): boolean {
  const needsPermission = needsReadPermission(scope, policy)
  const repositories = trackedFiles(directories)
  return repositories.some(({ paths }) => !paths || paths.some(needsPermission))
}
