import { findProgram, findSubcommand } from "./program-table.ts"
import type { Word } from "./words.ts"

/**
 * True where lines of files may be among what git prints, and not just their names or counts. `words` are those behind
 * `git`; options that the command does not have may count as some that it has.
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

/** From the subcommand on. */
function subcommand(words: readonly string[]): readonly string[] {
  const [first, ...rest] = words
  if (first === undefined || !first.startsWith("-")) return words
  return subcommand(valued.has(first) ? rest.slice(1) : rest)
}
