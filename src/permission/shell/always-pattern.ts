import { basename } from "node:path"
import { invisibleCharacters } from "../../util/invisible.ts"
import type { Program } from "./program.ts"
import { findVersioned, isBuildTool, usuallyExact } from "./program-table.ts"
import { maxWrapperWords } from "./risks.ts"
import type { PlannedCommand } from "./shell-plan.ts"
import type { Word } from "./words.ts"
import { innerCommands } from "./wrapped-commands.ts"

/** The pattern that "always" remembers, or the reason why "always" is not available. */
export type Suggestion = { pattern: string } | { reason: string }

/**
 * Returns the pattern that "always" remembers for a command: the program and the words that identify its action, such
 * as `git push *` or `npm run build *`. Returns the whole command if its first words do not identify its action, for
 * example for a program that runs or removes its operands, or if it has risky words that a rule must name (`isRisky`).
 * Returns a reason if no pattern covers only this command.
 */
export function suggestPattern(command: PlannedCommand, isRisky = false): Suggestion {
  const { argv, pattern, opaque, assignments = [], runsInput } = command
  if (opaque !== undefined) return { reason: "only the rule * can allow this command" }
  if (runsInput) return { reason: "a rule would allow it to run any code from its input" }
  if (invisibleCharacters([...assignments, pattern].join(" ")))
    return { reason: "it contains invisible characters" }
  const prefix = isRisky ? undefined : commandPrefix(argv)
  const remembered = prefix ?? argv
  if (remembered.some((word) => word.dynamic)) return { reason: "parts of it are known only at run time" }
  if (remembered.some((word) => word.glob || /[*?]/.test(word.text)) || assignments.some(hasWildcard))
    return { reason: "* and ? in a rule would also match other commands" }
  // Without quotes, the pattern would also match other words.
  if (remembered.some(({ text }) => /\s/.test(text)) || assignments.some((text) => /[\s'"$`\\]/.test(text)))
    return { reason: "a rule cannot distinguish its quoted words from several words" }
  const words = [...assignments, ...remembered.map(({ text }) => text), ...(prefix ? ["*"] : [])]
  return { pattern: words.join(" ") }
}

function hasWildcard(text: string): boolean {
  return /[*?]/.test(text)
}

/**
 * Returns the words that identify the action of a command. Returns undefined if only the whole command identifies it.
 */
function commandPrefix(argv: readonly Word[]): readonly Word[] | undefined {
  const [program, ...words] = argv
  const name = program?.text ?? ""
  const entry = findVersioned(name)
  if (!program || name.includes("/") || isExact(entry, words)) return undefined
  const prefix = argv.slice(0, prefixLength(entry, words[0]?.text))
  const isPlain = prefix.slice(1).every((word) => /^[\w:@.][\w:@./+-]*$/.test(word.text))
  if (!isPlain) return undefined
  const inner = innerCommands(name, words)
  if (inner.length === 0) return prefix
  // Only a prefix that ends with the inner command identifies the action.
  const [runs] = inner
  const isNamed = runs?.kind === "among" && runs.words[0] !== undefined && runs.words[0] === prefix.at(-1)
  return isNamed && !startsCommand(runs.words) ? prefix : undefined
}

/** Returns true if "always" remembers the whole command because of the program or its subcommand. */
function isExact(entry: Program | undefined, words: readonly Word[]): boolean {
  // A program without an entry may run a command that starts at one of its words.
  const named = words.filter(({ text }) => !text.startsWith("-")).map(({ text }) => text)
  if (!entry)
    return (
      usuallyExact.has(named[0] ?? "") ||
      words
        .slice(0, maxWrapperWords)
        .some(({ text }, index) => text === "--" || isBuildTool(text) || startsCommand(words.slice(index)))
    )
  if (entry.remember === "exact" || (entry.input && entry.remember === undefined)) return true
  const [subcommand] = named
  if (subcommand === undefined) return false
  const exact = `${entry.exact ?? ""} ${entry.riskySubcommands ?? ""}`.split(" ")
  const usual = usuallyExact.has(subcommand) && !entry.longer?.split(" ").includes(subcommand)
  return usual || exact.includes(subcommand)
}

/** Returns true if the words start with a program that runs code or another command. */
function startsCommand([program, ...words]: readonly Word[]): boolean {
  const name = basename(program?.text ?? "")
  const entry = findVersioned(name)
  if (!entry || entry.builtin) return false
  return Boolean(entry.input || entry.wraps) || innerCommands(name, words).length > 0
}

/** Returns the number of words that identify the action of a command. */
function prefixLength({ remember, longer }: Program = {}, subcommand = ""): number {
  const length = typeof remember === "number" ? remember : 1
  return longer?.split(" ").includes(subcommand) ? length + 1 : length
}
