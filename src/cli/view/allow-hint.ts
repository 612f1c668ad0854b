import { quoted } from "../../util/words.ts"
import { visible } from "../../view/visible.ts"

/** Limits for the hint: number of rules, and characters per rule. */
const maxRules = 3
const maxRule = 80

/**
 * Returns a hint with the flags that would have allowed the requests. Returns undefined if nothing was requested, if
 * rules cannot allow all of the requests, or if there are too many flags or a flag cannot be shown as one short text.
 */
export function allowHint(asked: readonly { rules?: readonly string[] }[]): string | undefined {
  const rules = [...new Set(asked.flatMap((each) => each.rules ?? []))]
  if (rules.length === 0 || rules.length > maxRules || !rules.every(isShort)) return undefined
  if (asked.some((each) => !each.rules?.length)) return undefined
  const flags = rules.map((rule) => `--allow ${quoted(rule)}`)
  return `no user was available; to allow this, add: ${flags.join(" ")}`
}

function isShort(rule: string): boolean {
  return rule.length <= maxRule && visible(rule) === rule && !rule.includes("\n")
}
