import type { Action, Rule } from "../schema/permission.ts"
import { checkRequest, type DetailedVerdict } from "./check.ts"
import { isStricter, type Judgement, matchingRules, type Policy } from "./policy.ts"
import type { Check, JudgedCheck, PermissionAsk, Scope } from "./request.ts"
import { permissionType } from "./rules.ts"

/** A rule as written in its source. `source` is a file or a name such as `defaults`. `line` starts at 1. */
export interface ExplainedRule {
  permission: string
  pattern: string
  action: Action
  source: string
  line?: number
}

/**
 * One check and its verdict. `rule` is undefined if no rule decided, for example because the file belongs to the
 * session.
 */
export interface ExplainedCheck {
  permission: string
  pattern: string
  verdict: Action
  rule?: ExplainedRule
  /** The reason for the verdict, if it is not obvious from the rule. */
  reason?: string
  /** The path with symbolic links resolved. */
  resolved?: string
  /** Other matching rules, which did not decide. */
  shadowed: ExplainedRule[]
}

/**
 * One command in a command text. For permissions other than `bash` and `sandbox_escape`, one check of the requested
 * permission, with an empty `argv`.
 */
export interface ExplainedCommand extends Pick<ExplainedCheck, "pattern" | "verdict" | "rule" | "reason"> {
  argv: string[]
}

/** A verdict and its reasons as plain data. */
export interface Explanation {
  verdict: Action
  /** The deciding rule of the first check that has the overall verdict. */
  rule?: ExplainedRule
  commands: ExplainedCommand[]
  /** All checks, such as those of commands, of files that commands name or open, and of paths outside the worktree. */
  checks: ExplainedCheck[]
  /** The `shadowed` rules of all checks, without duplicates. */
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
        .filter(({ permission }) =>
          [permissionType(request.permission), request.alias?.name].includes(permission),
        )
        .map(({ pattern, verdict, rule, reason }) => ({ argv: [], pattern, verdict, rule, reason }))
  return explanation(verdict.action, commands, checks)
}

/**
 * Combines the explanations of requests that one call makes in sequence. The strictest verdict applies. The verdict for
 * an empty list is `allow`.
 */
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

/**
 * Returns the rules that decided the given checks of a verdict, without duplicates. `given` is the policy before its
 * patterns were expanded. For a check that no rule decided, the result contains the default rule, which asks.
 */
export function decidingRules(
  { details, policy }: DetailedVerdict,
  { checks, given }: { checks: readonly Check[]; given: Policy },
): ExplainedRule[] {
  const show = ruleWriter(given, policy)
  const rules = details
    .filter(({ check }) => checks.includes(check))
    .map(({ check: { permission }, judgement: { rule, layer } }): ExplainedRule => {
      if (rule) return show({ rule, layer })
      return { permission, pattern: "*", action: "ask", source: "defaults" }
    })
  return [...new Map(rules.map((rule) => [JSON.stringify(rule), rule])).values()]
}

type RuleWriter = (match: { rule: Rule; layer?: Judgement["layer"] }) => ExplainedRule

/** Returns a function that describes rules as written, with `~` and `$HOME` not expanded. */
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
  const { permission, pattern, forms, resolved, own, options } = check
  const { rule, layer, action } = judgement
  return {
    permission,
    pattern,
    verdict: action,
    rule: rule && show({ rule, layer }),
    reason: judged?.reason ?? (own && rule === undefined ? "the file belongs to the session" : undefined),
    resolved,
    shadowed: matchingRules(policy, permission, forms, options.alias)
      .filter((match) => match.rule !== rule)
      .map(show),
  }
}
