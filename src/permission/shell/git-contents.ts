import type { Word } from "./words.ts"

/**
 * True where lines of files may be among what git prints, and not just their names or counts. `words` are those behind
 * `git`; options that the command does not have may count as some that it has.
 */
export function showsContents(words: readonly Word[]): boolean {
  const [name = "", ...rest] = subcommand(words.map(({ text }) => text))
  const nested = `${name} ${rest[0]}`
  const options = rest.filter((text) => text.startsWith("-"))
  if (always.has(name)) return true
  if (name === "status" || name === "commit") return options.some((text) => /^-(?:[a-z]*v|-v)/.test(text))
  if (shows.has(name) || shows.has(nested))
    return options.some(asksForPatch) || !options.some((text) => summaries.has(text.replace(/=.*/, "")))
  if (lists.has(name) || lists.has(nested)) return options.some(asksForPatch)
  return picks.has(name) && options.some((text) => /^-(?:[a-z]*[pi]|-p|-i)/.test(text))
}

const set = (names: string): ReadonlySet<string> => new Set(names.split(" "))

const always = set("blame annotate cat-file fast-export merge-tree format-patch range-diff")
/** Show contents unless they are told to only sum up. */
const shows = new Set(["diff", "show", "stash show"])
/** Show contents where they are told to. */
const lists = new Set([..."log whatchanged reflog diff-tree diff-index diff-files".split(" "), "stash list"])
/** Show each part of a change and ask what to do with it. */
const picks = set("add checkout restore reset stash commit")

const summaries = set(
  "-s -q --no-patch --quiet --stat --numstat --shortstat --dirstat --summary --compact-summary --name-only --name-status --raw",
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
