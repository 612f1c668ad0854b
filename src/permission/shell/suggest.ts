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
  const { argv, pattern, opaque, assignments = [] } = command
  if (opaque !== undefined || invisibleCharacters([...assignments, pattern].join(" "))) return undefined
  const program = argv[0]?.text ?? ""
  const texts = argv.map((word) => word.text)
  const isExact = program.includes("/") || findProgram(basename(program))?.remember === "exact"
  const prefix = texts.slice(0, isExact ? texts.length : prefixLength(texts))
  const whole = isExact || prefix.slice(1).some((word) => !/^[\w:@.][\w:@./+-]*$/.test(word))
  const remembered = whole ? argv : argv.slice(0, prefix.length)
  // Without quotes, the pattern would also match other words.
  if (remembered.some((word) => word.dynamic || word.glob || /[*?\s]/.test(word.text))) return undefined
  const words = [...assignments, ...remembered.map((word) => word.text), ...(whole ? [] : ["*"])]
  return assignments.some((text) => /[*?\s'"$`\\]/.test(text)) ? undefined : words.join(" ")
}

/** Returns the number of words that identify the action of a command. */
function prefixLength([program = "", subcommand = ""]: readonly string[]): number {
  const { remember, longer } = findProgram(program) ?? {}
  const length = typeof remember === "number" ? remember : 1
  return longer?.split(" ").includes(subcommand) ? length + 1 : length
}
