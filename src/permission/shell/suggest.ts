import { basename } from "node:path"
import { invisibleCharacters } from "../invisible.ts"
import { findProgram } from "./program-table.ts"
import type { PlannedCommand } from "./shell-plan.ts"

/**
 * Returns the pattern that "always" remembers for a command: the program and the words that say what it does, such
 * as `git push *` or `npm run build *`. For a program that runs or removes what it is given, it is the whole
 * command. Undefined where no pattern means just this command: it is not understood, has parts that are known only
 * when it runs, or contains a `*` or `?` that would become a wildcard.
 */
export function rememberedPattern(command: PlannedCommand): string | undefined {
  const { argv, pattern, opaque, assigns } = command
  if (opaque !== undefined || assigns || /[*?]/.test(pattern) || invisibleCharacters(pattern))
    return undefined
  if (argv.some((word) => word.dynamic || word.glob || /\s/.test(word.text))) return undefined
  const program = argv[0]?.text ?? ""
  if (program.includes("/") || findProgram(basename(program))?.remember === "exact") return pattern

  const words = argv.slice(0, prefixLength(argv.map((word) => word.text))).map((word) => word.text)
  return words.slice(1).some((word) => !/^[\w:@.][\w:@./+-]*$/.test(word)) ? pattern : `${words.join(" ")} *`
}

/** The number of words that say what a command does. */
function prefixLength([program = "", subcommand = ""]: readonly string[]): number {
  const { remember, longer } = findProgram(program) ?? {}
  const length = typeof remember === "number" ? remember : 1
  return longer?.split(" ").includes(subcommand) ? length + 1 : length
}
