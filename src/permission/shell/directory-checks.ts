import { existsSync, statSync } from "node:fs"
import { basename, join, normalize, relative, resolve } from "node:path"
import type { Rule } from "../../schema/permission.ts"
import { deniedName, fileChecks, type ResolvedScope, relativeToWorktree } from "../path-checks.ts"
import { deniesOf, judge, type Policy } from "../policy.ts"
import { protectionInHome, protectionOf } from "../protected-files.ts"
import type { Check } from "../request.ts"
import { type CommandContext, type CommandScope, expandWord } from "./command-forms.ts"
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
import { literalWord, type Word } from "./words.ts"

/**
 * Returns `read` checks for the directories that a command names. Used for commands that are not proved to only read.
 * For a program that reads whole directories, the files that need permission are checked. For other programs, only the
 * files that a rule denies are checked. At most ten files per directory are checked. A missing directory is judged by
 * the files that it may contain later.
 */
export async function directoryChecks(context: CommandContext): Promise<Check[]> {
  const { name, words, directories, scope, policy } = context
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
    // For a missing directory, and for a directory that is read as a whole but has too many entries, the command asks
    // if a rule denies part of the directory. Otherwise, only the rules for the command apply.
    if (!found && (readsAll || kind === undefined)) checks.push(...possibleFilesBelow(root, scope, policy))
    checks.push(...(found ?? []).flatMap((path) => fileChecks("read", path, scope)))
  }
  return checks
}

/**
 * Returns checks for the files that need permission below the directories that a read-only command reads, at most ten
 * per directory. `files` are the command's operands. Without operands, the command reads its working directory. Returns
 * undefined if the files are unknown.
 */
export async function wholeReadChecks(
  { directories, scope, policy }: CommandContext,
  files: readonly Word[],
  { hidden, unhidden, followsLinks, selects, plainNames }: WholeReading,
): Promise<Check[] | undefined> {
  if (!directories) return undefined
  const needsPermission = needsReadPermission(scope, policy)
  const reading: RecursiveReading = {
    hidden,
    selects,
    plainNames,
    needsPermission,
    listing: scope.listing,
    ...(followsLinks && followingLinks(needsPermission, scope)),
  }
  const words = files.length > 0 ? files : [literalWord(".")]
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

/** Returns the absolute paths that a word can mean, or undefined if the files that a glob matches are unknown. */
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
  const reason = access === "read" ? "it reads a whole directory" : "it may change a whole directory"
  return [possibleCheck(access, span, { forms: [relative, directory], reason })]
}

/** Returns a check that asks if a rule denies one of the paths that `span` stands for. */
export function possibleCheck(
  permission: string,
  span: string,
  { pattern = span, forms = [], reason }: Partial<Pick<Check, "pattern" | "forms" | "reason">>,
): Check {
  return { permission, pattern, forms, options: { span, spanRefusals: ["deny"] }, reason }
}

/** Returns whether a path is a file or a directory, or undefined if it does not exist or cannot be resolved. */
export function kindOf(path: string): "file" | "directory" | undefined {
  try {
    return statSync(path).isDirectory() ? "directory" : "file"
  } catch {
    // The path does not exist or does not resolve, for example because of a zero byte or a cycle of links.
    return undefined
  }
}

/**
 * Returns, for each directory, a check for a tracked file that git may show or change although a rule denies this
 * access. The check asks even if a rule allows the command, because it is unknown which of the files git uses.
 */
export function trackedFileChecks(
  access: "read" | "edit",
  { directories = [], scope, policy }: Pick<CommandContext, "directories" | "scope" | "policy">,
): Check[] {
  const reason = access === "read" ? "git may show it" : "it may change a path that a rule denies"
  return directories.flatMap((directory) => {
    const repository = trackedFiles(directory)
    if (!repository && access === "read") return []
    if (!repository?.paths) return possibleFilesBelow(repository?.root ?? directory, scope, policy, access)
    const denied = repository.paths
      .map((path) => [relativeToWorktree(path, scope), path] as const)
      .find((forms) => judge(policy, access, forms).action === "deny")
    return denied ? [possibleCheck(access, denied[0], { reason })] : []
  })
}

/**
 * Returns true if git tracks a file that needs permission to be read, or if the tracked files are unknown. Ignores
 * files that exist only in past commits.
 */
export function mayShowProtectedFile({ directories = [], scope, policy }: CommandContext): boolean {
  const needsPermission = needsReadPermission(scope, policy)
  return directories.some((directory) => {
    const repository = trackedFiles(directory)
    return repository && (!repository.paths || repository.paths.some(needsPermission))
  })
}
