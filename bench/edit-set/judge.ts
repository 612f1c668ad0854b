import { applyEdit } from "../../src/tools/edit/apply-edit.ts"
import { findEdit } from "../../src/tools/edit/find-edit.ts"
import { strategyName } from "../../src/tools/edit/report.ts"
import type { BentEdit } from "./bend.ts"

/** `right` is also a refusal of what must be refused. `wrong` is any other text than the expected one. */
export type Verdict = "right" | "refused" | "wrong"

export interface Judged {
  verdict: Verdict
  /** How the text was found, or why not. */
  how: string
  result?: string
}

/** Does the edit as the tool does, without a file. */
export function judge({ file, oldString, newString, expected }: BentEdit): Judged {
  const match = findEdit(file, { oldString, newString, replaceAll: false })
  const merged = match.kind === "found" ? applyEdit({ text: file, match }) : undefined
  const result = merged && "text" in merged ? merged.text : undefined
  const how =
    "strategy" in match ? `${match.kind} ${strategyName(match.strategy, match.reading)}` : match.kind
  if (result === undefined || result === file)
    return { verdict: expected === undefined ? "right" : "refused", how }
  return { verdict: result === expected ? "right" : "wrong", how, result }
}
