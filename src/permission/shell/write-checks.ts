import { basename, join, resolve } from "node:path"
import { realPath } from "../../util/paths.ts"
import { externalChecks, fileChecks, relativeToWorktree } from "../path-checks.ts"
import { deniesOf, judge, type Policy, wildcardProbe } from "../policy.ts"
import type { Check } from "../request.ts"
import { type CommandContext, type CommandScope, expandWord } from "./command-forms.ts"
import { kindOf, possibleCheck, possibleFilesBelow, trackedFileChecks } from "./directory-checks.ts"
import { filesNeedingPermission } from "./directory-files.ts"
import { anyFile, pathsInCode } from "./file-checks.ts"
import { nameWithin, type WrittenWord, writtenWords } from "./operands.ts"
import { absolutePaths, candidates, globFiles } from "./paths-in-words.ts"
import { harmlessDevice, literalWord, type Word } from "./words.ts"

/**
 * Returns `edit` checks for each written path that is protected or that a rule denies. A rule that allows the command
 * does not allow these edits. The command requires permission if a rule denies a path in a directory that the command
 * changes, if a rule denies any edit and a path is known only at run time, or if the command names a denied path that
 * it may write.
 */
export async function writeChecks(of: CommandContext): Promise<Check[]> {
  const context: WriteContext = { ...of, denies: deniesOf(of.policy, "edit").length > 0 }
  const checks: Check[] = []
  for (const each of writtenWords(basename(of.name), of.words)) {
    if (each.uncertain) checks.push(...mentionChecks(candidates(each.word, of.scope.home), context))
    else checks.push(...(await wordChecks(each, context)))
  }
  return [...checks, ...mentionChecks(pathsInCode(of), context)]
}

interface WriteContext extends Pick<CommandContext, "directories" | "scope" | "policy"> {
  /** Whether a rule denies any edit. If no rule does, only protected files matter. */
  denies: boolean
}

async function wordChecks(each: WrittenWord, context: WriteContext): Promise<Check[]> {
  const { scope, policy, denies } = context
  const { word, below, unlessExist } = each
  if (unlessExist?.some((other) => exists(other, context))) return []
  if (below === "tracked") {
    if (!denies) return []
    return context.directories ? trackedFileChecks("edit", context) : [anyFile("edit", ".")]
  }
  const roots = each.fromRoot ? [scope.worktree] : context.directories
  const paths = word.dynamic ? undefined : await writtenPaths(each, { ...context, directories: roots })
  if (!paths) return denies ? [anyFile("edit", word.text)] : []
  const checks: Check[] = []
  for (const path of paths) {
    const edits = fileChecks("edit", path, scope).filter(({ permission }) => permission === "edit")
    checks.push(
      ...edits.filter(
        ({ forms, options: { denyForms }, protection }) =>
          protection || judge(policy, "edit", forms, { denyForms }).action === "deny",
      ),
    )
    if (denies && changesBelow(path, each, context)) checks.push(...(await belowChecks(path, context)))
    if (below) checks.push(...externalChecks(path, scope))
  }
  return checks
}

/** Returns the paths that a written word can mean, or undefined if they are unknown. */
async function writtenPaths(
  { word, from }: WrittenWord,
  { directories, scope, policy }: WriteContext,
): Promise<string[] | undefined> {
  const text = expandWord(word, scope.home)
  if (harmlessDevice.test(text) || /^(?:[A-Za-z][\w+.-]*:\/\/|[^/]*:)/.test(text)) return []
  if (word.derived) return undefined
  if (word.glob) {
    const bases = absolutePaths(text, word, directories)?.map(globBase)
    const found = await Promise.all(
      (directories ?? []).map((directory) => globFiles(text, directory, { word, listing: scope.listing })),
    )
    if (!bases || found.includes(undefined)) return undefined
    const files = found.flatMap((each, at) =>
      (each ?? []).map((file) => resolve(directories?.[at] ?? "/", file)),
    )
    // An earlier command in the text may create files that match.
    return files.length > 0 ? files : bases.filter((base) => wholeCheck(base, scope, policy))
  }
  const paths = absolutePaths(text, word, directories)
  if (!from) return paths?.map((path) => (kindOf(path) === undefined ? globBase(path) : path))
  if (from.dynamic || from.glob)
    return paths?.some((path) => kindOf(path) === "directory") ? undefined : paths
  // With a trailing slash, some programs copy the contents of the source into the directory.
  const isContents = /\/\.?$/.test(from.text)
  return paths?.flatMap((path) => {
    if (kindOf(path) !== "directory" && !text.endsWith("/")) return [path]
    return isContents ? [path, join(path, nameWithin(from))] : [join(path, nameWithin(from))]
  })
}

/**
 * For a quoted glob, which the program may expand, returns the directory in which the glob starts. Returns other paths
 * unchanged.
 */
function globBase(path: string): string {
  return /^[^*?[{]*(?=\/[^/]*[*?[{])/.exec(path)?.[0] ?? path
}

/**
 * Returns true if the command may also write below the path. Returns false if the path, or the source of a copy or
 * move, is a file.
 */
function changesBelow(path: string, { from, below }: WrittenWord, context: WriteContext): boolean {
  if (below) return true
  // An earlier command in the text may create a missing path as a directory.
  if (!from) return kindOf(path) !== "file"
  const { directories, scope } = context
  const sources = absolutePaths(expandWord(from, scope.home), from, directories)
  return sources?.every((source) => kindOf(source) === "file") !== true
}

/** Returns checks for a directory in which a command may change any file. */
async function belowChecks(directory: string, { scope, policy }: WriteContext): Promise<Check[]> {
  const whole = wholeCheck(directory, scope, policy)
  if (whole) return [whole]
  const isDenied = (path: string) =>
    judge(policy, "edit", [relativeToWorktree(path, scope), path]).action === "deny"
  for (const root of new Set([resolve(directory), realPath(directory)])) {
    const [found] =
      (await filesNeedingPermission(root, {
        hidden: true,
        listing: scope.listing,
        needsPermission: isDenied,
      })) ?? []
    if (found !== undefined) return [asking(relativeToWorktree(found, scope))]
    const possible = possibleFilesBelow(root, scope, policy, "edit")
    if (possible.length > 0) return possible
  }
  return []
}

/** If a rule denies all new files in a directory, returns a check that is denied. Otherwise, returns undefined. */
function wholeCheck(directory: string, scope: CommandScope, policy: Policy): Check | undefined {
  for (const root of [resolve(directory), realPath(directory)]) {
    const relative = relativeToWorktree(root, scope)
    const forms = [join(relative, wildcardProbe), join(root, wildcardProbe)]
    if (judge(policy, "edit", forms).action === "deny")
      return { permission: "edit", pattern: `${relative || "."}/*`, forms, options: {} }
  }
  return undefined
}

/**
 * Returns checks that ask for each named path that a rule denies. Returns no checks if a rule denies everything,
 * because every path would then ask. In that case, only the sandbox stops the command.
 */
function mentionChecks(
  texts: readonly string[],
  { directories, scope, policy, denies }: WriteContext,
): Check[] {
  if (!denies || judge(policy, "edit", [wildcardProbe]).action === "deny") return []
  return texts
    .filter((text) => !/^[A-Za-z][\w+.-]*:\/\//.test(text))
    .flatMap((text) => absolutePaths(text, literalWord(text), directories) ?? [])
    .filter(
      (path) =>
        wholeCheck(path, scope, policy) !== undefined ||
        fileChecks("edit", path, scope).some(
          ({ permission, forms }) => permission === "edit" && judge(policy, "edit", forms).action === "deny",
        ),
    )
    .map((path) => asking(relativeToWorktree(resolve(path), scope)))
}

/** Returns a check that asks for a path that a rule denies, because it is unknown whether the command writes it. */
function asking(path: string): Check {
  return possibleCheck("edit", path, { reason: "it may change a path that a rule denies" })
}

function exists(word: Word, { directories, scope }: WriteContext): boolean {
  const paths = absolutePaths(expandWord(word, scope.home), word, directories) ?? []
  return paths.some((path) => kindOf(path) !== undefined)
}
