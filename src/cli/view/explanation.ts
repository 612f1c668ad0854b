import type { ExplainedRule, Explanation } from "../../permission/explain.ts"
import { displayPath } from "../../util/paths.ts"
import { visible } from "./visible.ts"

/** Describes a verdict: a line for each check and a line for the rule that decided it. */
export function describeExplanation({ checks, shadowed }: Explanation, worktree: string): string[] {
  const lines = checks.flatMap(({ verdict, permission, pattern, rule, reason, resolved }) => {
    const [first = "", ...more] = visible(pattern).split("\n")
    const leads =
      resolved !== undefined && resolved !== pattern && !resolved.endsWith(`/${pattern}`)
        ? [`resolves to ${visible(resolved)}`]
        : []
    return [
      `${verdict.padEnd(5)}  ${permission}: ${first}`,
      ...[
        ...more,
        ...leads,
        ...(rule ? [`rule: ${describeRule(rule, worktree)}${possibleMatch(verdict, rule)}`] : []),
        ...(reason === undefined ? [] : [`because ${reason}`]),
      ].map((text) => `       ${text}`),
    ]
  })
  if (shadowed.length === 0) return lines
  return [...lines, "overruled:", ...shadowed.map((rule) => `       ${describeRule(rule, worktree)}`)]
}

/** Formats a rule as `deny bash: rm * (tackle.json:4)`. */
export function describeRule(
  { permission, pattern, action, source, line }: ExplainedRule,
  worktree: string,
): string {
  const file = source.startsWith("/") ? displayPath(source, worktree) : source
  return visible(`${action} ${permission}: ${pattern} (${file}${line === undefined ? "" : `:${line}`})`)
}

function possibleMatch(verdict: string, rule: ExplainedRule): string {
  return verdict === "ask" && rule.action === "deny" ? ", which it could match at run time" : ""
}
