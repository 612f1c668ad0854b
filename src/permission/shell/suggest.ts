import { basename } from "node:path"
import { invisibleCharacters } from "../invisible.ts"
import { findProgram } from "./program-table.ts"
import type { PlannedCommand } from "./shell-plan.ts"

/**
 * Returns the pattern that "always" remembers for a command: the program and the words that identify its action, such
 * as `git push *` or `npm run build *`. Returns the whole command for a program that runs or removes its operands.
 * Returns undefined if no pattern covers only this command: it could not be analyzed, has parts known only at run time,
 * or contains `*` or `?`, which would become wildcards.
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

/** Returns the number of words that identify the action of a command. */
function prefixLength([program = "", subcommand = ""]: readonly string[]): number {
  const { remember, longer } = findProgram(program) ?? {}
  const length = typeof remember === "number" ? remember : 1
  return longer?.split(" ").includes(subcommand) ? length + 1 : length
}
