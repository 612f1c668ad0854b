import { applyEdit } from "../../../src/tools/edit/apply-edit.ts"
import { findEdit } from "../../../src/tools/edit/find-edit.ts"
import { strategyName } from "../../../src/tools/edit/report.ts"

/** Returns the strategy and the text after the edit, or the reason why the edit was refused. */
export function edit(text: string, oldString: string, newString: string, replaceAll = false) {
  const match = findEdit(text, { oldString, newString, replaceAll })
  if (match.kind === "found") {
    return { strategy: strategyName(match.strategy, match.reading), ...applyEdit({ text, match }) }
  }
  if (match.kind !== "ambiguous") return match
  const { reading, ...refusal } = match
  return { ...refusal, strategy: strategyName(match.strategy, reading) }
}
