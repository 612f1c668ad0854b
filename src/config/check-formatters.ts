import type { FormatterEntry } from "../formatter/config.ts"
import { formatterProblem } from "../formatter/formatters.ts"
import { ConfigError } from "./errors.ts"
import { entryOf, type ObjectNode, toPlain } from "./node.ts"

/**
 * Throws `ConfigError` for formatters that are not known and say too little. Asked of the whole config, since one file may
 * add to what another says.
 */
export function checkFormatters(tree: ObjectNode): void {
  const section = entryOf(tree, "formatter")?.value
  if (section?.kind !== "object") return
  const problems = section.entries.flatMap(({ key, place, value }) => {
    const text = formatterProblem(key, toPlain(value) as FormatterEntry)
    return text === undefined ? [] : [{ place, text }]
  })
  if (problems.length > 0) throw new ConfigError(problems)
}
