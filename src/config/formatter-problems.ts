import type { FormatterEntry } from "../formatter/config.ts"
import { formatterProblem } from "../formatter/formatters.ts"
import type { Problem } from "./errors.ts"
import { entryOf, type ObjectNode, toPlain } from "./node.ts"

/**
 * The formatters that are not known and say too little. Asked of the whole config, since one file may add to what another
 * says.
 */
export function formatterProblems(tree: ObjectNode): Problem[] {
  const section = entryOf(tree, "formatter")?.value
  if (section?.kind !== "object") return []
  return section.entries.flatMap(({ key, place, value }) => {
    const text = formatterProblem(key, toPlain(value) as FormatterEntry)
    return text === undefined ? [] : [{ place, text }]
  })
}
