import { basename, join } from "node:path"
import { relativeToWorktree } from "../path-checks.ts"
import { judge, type Policy } from "../policy.ts"
import type { Check } from "../request.ts"
import type { CommandScope } from "./command-forms.ts"
import { needsReadPermission, possibleFilesBelow } from "./directory-checks.ts"
import { trackedPaths } from "./git-index.ts"
import { findRepository } from "./git-repository.ts"
import { findProgram, findSubcommand } from "./program-table.ts"
import type { PlannedCommand } from "./shell-plan.ts"
import type { Word } from "./words.ts"

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

/** Returns the repositories of the directories. `paths` lists the absolute paths of the tracked files, if known. */
export function trackedFiles(
  directories: readonly string[] = [],
): { root: string; paths: string[] | undefined }[] {
  const found = []
  for (const directory of directories) {
    const repository = findRepository(directory)
    if (!repository) continue
    const { root, gitDirectory } = repository
    const tracked = gitDirectory === undefined ? undefined : trackedPaths(gitDirectory)
    found.push({ root, paths: tracked?.map((path) => join(root, path)) })
  }
  return found
}

/**
 * Returns true if git may print lines of files, not only names or counts. `words` are the words after `git`. Also takes
 * into account options that the subcommand may not support.
 */
export function showsContents(words: readonly Word[]): boolean {
  const rest = subcommand(words.map(({ text }) => text))
  const found =
    git &&
    findSubcommand(
      git,
      rest.map((text) => ({ text })),
    )
  const options = rest.slice(found?.words).filter((text) => text.startsWith("-"))
  switch (found?.program.shows) {
    case "always":
      return true
    case "unless summed up":
      return options.some(asksForPatch) || !options.some((text) => summaries.has(text.replace(/=.*/, "")))
    case "with a patch option":
      return options.some(asksForPatch)
    case "when verbose":
      return options.some((text) => /^-(?:[a-z]*v|-v)/.test(text))
    case "when interactive":
      return options.some((text) => /^-(?:[a-z]*[pi]|-p|-i)/.test(text))
    default:
      return false
  }
}

const git = findProgram("git")

const summaries: ReadonlySet<string> = new Set(
  "-s -q --no-patch --quiet --stat --numstat --shortstat --dirstat --summary --compact-summary --name-only --name-status --raw".split(
    " ",
  ),
)

const patches =
  "--patch --unified --function-context --cc --binary --check --word-diff --color-words --remerge-diff --dd --diff-merges".split(
    " ",
  )

function asksForPatch(option: string): boolean {
  if (!option.startsWith("--")) return /^-[^SG]*[pUWLcu]/.test(option)
  const name = option.replace(/=.*/, "")
  return patches.some((known) => name.startsWith(known) || (name.length > 3 && known.startsWith(name)))
}

const valued = new Set([
  "-C",
  "-c",
  "--git-dir",
  "--work-tree",
  "--namespace",
  "--exec-path",
  "--super-prefix",
])

/** Returns the subcommand and the words after it. */
function subcommand(words: readonly string[]): readonly string[] {
  let start = 0
  for (let word = words[0]; word?.startsWith("-"); word = words[start]) start += valued.has(word) ? 2 : 1
  return words.slice(start)
}
