import type { Action, Rule } from "../schema/permission.ts"
import { checkRequest, type DetailedVerdict } from "./check.ts"
import { isStricter, type Judgement, matchingRules, type Policy } from "./policy.ts"
import type { JudgedCheck, PermissionAsk, Scope } from "./request.ts"
import { permissionType } from "./rules.ts"

/** A rule as written. `source` is a file or a name such as `defaults`; `line` counts from 1. */
export interface ExplainedRule {
  permission: string
  pattern: string
  action: Action
  source: string
  line?: number
}

/** One check. `rule` is undefined if no rule matched, or for a file of the session itself. */
export interface ExplainedCheck {
  permission: string
  pattern: string
  verdict: Action
  rule?: ExplainedRule
  /** Why it is not allowed, if not obvious from the rule. */
  reason?: string
  /** The path with links followed. */
  resolved?: string
  /** Other matching rules, which the deciding rule overrules. */
  shadowed: ExplainedRule[]
}

/** One command of a shell text. For other permissions: one pattern, without arguments. */
export interface ExplainedCommand extends Pick<ExplainedCheck, "pattern" | "verdict" | "rule" | "reason"> {
  argv: string[]
}

/** A verdict and its reasons as plain data. */
export interface Explanation {
  verdict: Action
  /** The deciding rule of the first check that has the overall verdict. */
  rule?: ExplainedRule
  commands: ExplainedCommand[]
  /** Every check: commands, the files they name or open, and paths outside the worktree. */
  checks: ExplainedCheck[]
  /** All overruled rules, without duplicates. */
  shadowed: ExplainedRule[]
}

/** Judges a request and returns the verdict with its reasons. */
export async function explainRequest(
  request: PermissionAsk,
  scope: Scope,
  home: string,
): Promise<Explanation> {
  const policy = scope.policy()
  const verdict = await checkRequest(request, { ...scope, policy: () => policy }, home)
  const show = ruleWriter(policy, verdict.policy)
  const checks = verdict.details.map((detail, index) =>
    explainCheck(detail, verdict.checks[index], verdict.policy, show),
  )
  const commands = verdict.commands
    ? verdict.commands.map(({ argv, pattern, action, rule, reason }) => ({
        argv,
        pattern,
        verdict: action,
        rule: rule && show({ rule }),
        reason,
      }))
    : checks
        .filter(({ permission }) => permission === permissionType(request.permission))
        .map(({ pattern, verdict, rule, reason }) => ({ argv: [], pattern, verdict, rule, reason }))
  return explanation(verdict.action, commands, checks)
}

/** Joins the explanations of requests that one call makes in sequence. The strictest verdict applies; none means allow. */
export function joinExplanations(explanations: readonly Explanation[]): Explanation {
  const verdict = explanations.reduce<Action>(
    (strictest, { verdict }) => (isStricter(verdict, strictest) ? verdict : strictest),
    "allow",
  )
  return explanation(
    verdict,
    explanations.flatMap(({ commands }) => commands),
    explanations.flatMap(({ checks }) => checks),
  )
}

function explanation(verdict: Action, commands: ExplainedCommand[], checks: ExplainedCheck[]): Explanation {
  const shadowed = checks.flatMap((check) => check.shadowed)
  return {
    verdict,
    rule: checks.find((check) => check.verdict === verdict)?.rule,
    commands,
    checks,
    shadowed: [...new Map(shadowed.map((rule) => [JSON.stringify(rule), rule])).values()],
  }
}

type RuleWriter = (match: { rule: Rule; layer?: Judgement["layer"] }) => ExplainedRule

/** Returns a function that shows rules as written, before `~` and `$HOME` were expanded. */
function ruleWriter(given: Policy, applied: Policy): RuleWriter {
  const originals = new Map<Rule, Rule>()
  const pair = (written: readonly Rule[] = [], expanded: readonly Rule[] = []) => {
    for (const [index, rule] of expanded.entries()) originals.set(rule, written[index] ?? rule)
  }
  for (const [index, { rules }] of applied.layers.entries()) pair(given.layers[index]?.rules, rules)
  pair(given.ceiling, applied.ceiling)
  return ({ rule, layer = "defaults" }) => {
    const { permission, pattern, action, source } = originals.get(rule) ?? rule
    return { permission, pattern, action, source: source?.file ?? layer, line: source?.line }
  }
}

function explainCheck(
  { check, judgement }: DetailedVerdict["details"][number],
  judged: JudgedCheck | undefined,
  policy: Policy,
  show: RuleWriter,
): ExplainedCheck {
  const { permission, pattern, forms, resolved, own } = check
  const { rule, layer, action } = judgement
  return {
    permission,
    pattern,
    verdict: action,
    rule: rule && show({ rule, layer }),
    reason: judged?.reason ?? (own ? "the file belongs to the session itself" : undefined),
    resolved,
    shadowed: matchingRules(policy, permission, forms)
      .filter((match) => match.rule !== rule)
      .map(show),
  }
}
