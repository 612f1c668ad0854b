import { basename } from "node:path"
import { invisibleCharacters } from "../invisible.ts"
import { findProgram } from "./program-table.ts"
import type { PlannedCommand } from "./shell-plan.ts"

/**
 * The pattern that "always" would remember for a command: its program and the words that say what it does, such as
 * `git push *` or `npm run build *`. For programs that run or remove whatever they are given it is the command as it
 * stands. Undefined where no pattern would mean just this: the command is not understood, is made of parts known only
 * when it runs, or holds a `*` or `?` that would become a wildcard.
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

/** How many words say what a command does. */
function prefixLength([program = "", subcommand = ""]: readonly string[]): number {
  const { remember, longer } = findProgram(program) ?? {}
  const length = typeof remember === "number" ? remember : 1
  return longer?.split(" ").includes(subcommand) ? length + 1 : length
}
