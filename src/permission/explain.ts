import type { Action, Rule } from "../schema/permission.ts"
import { checkRequest, type DetailedVerdict } from "./check.ts"
import { type Match, matchingRules, type Policy } from "./policy.ts"
import type { Check, JudgedCheck, JudgedCommand, PermissionAsk, Scope } from "./request.ts"
import { permissionType } from "./rules.ts"

/** A rule as it was written, and where: `source` is a file, or a name such as `defaults`; `line` counts from 1. */
export interface ExplainedRule {
  permission: string
  pattern: string
  action: Action
  source: string
  line?: number
}

/** One thing that was judged. Without a rule nothing matched, or it is a file of the session itself. */
export interface ExplainedCheck {
  permission: string
  pattern: string
  verdict: Action
  rule?: ExplainedRule
  /** Why it is not allowed, where the rule alone does not tell. */
  reason?: string
  /** The path with links followed. */
  resolved?: string
  /** Rules that match as well, and that the deciding one overruled. */
  shadowed: ExplainedRule[]
}

/** One command of a text for the shell. Of other permissions: one of the patterns, without words. */
export interface ExplainedCommand {
  argv: string[]
  pattern: string
  verdict: Action
  rule?: ExplainedRule
  reason?: string
}

/** A verdict and everything it rests on, as plain data. */
export interface Explanation {
  verdict: Action
  /** The rule that decided: of the first check that has the verdict of the whole. */
  rule?: ExplainedRule
  commands: ExplainedCommand[]
  /** Everything that was judged: commands, the files they name or open, and places outside. */
  checks: ExplainedCheck[]
  /** The rules that some deciding one overruled, each once. */
  shadowed: ExplainedRule[]
}

/** Judges a request and tells why. Reads the same rules in the same way as the request itself would be. */
export async function explainRequest(
  request: PermissionAsk,
  scope: Scope,
  home: string,
): Promise<Explanation> {
  const policy = scope.policy()
  const verdict = await checkRequest(request, { ...scope, policy: () => policy }, home)
  const show = ruleWriter(policy, verdict.policy)
  const checks = verdict.details.map((detail, index) =>
    explainCheck({ ...detail, judged: verdict.checks[index] }, verdict, show),
  )
  const decisive = checks.find((check) => check.verdict === verdict.action)?.rule
  return {
    verdict: verdict.action,
    ...(decisive ? { rule: decisive } : {}),
    commands: verdict.commands
      ? verdict.commands.map((command) => explainCommand(command, show))
      : checks
          .filter(({ permission }) => permission === permissionType(request.permission))
          .map(({ shadowed: _, resolved: __, permission: ___, ...rest }) => ({ argv: [], ...rest })),
    checks,
    shadowed: distinct(checks.flatMap((check) => check.shadowed)),
  }
}

const strictness: Readonly<Record<Action, number>> = { allow: 0, ask: 1, deny: 2 }

/** Of requests that one call makes one after the other: the strictest verdict, by the first that has it. None: allowed. */
export function joinExplanations(explanations: readonly Explanation[]): Explanation {
  const decisive = [...explanations].sort((a, b) => strictness[b.verdict] - strictness[a.verdict])[0]
  return {
    verdict: decisive?.verdict ?? "allow",
    ...(decisive?.rule ? { rule: decisive.rule } : {}),
    commands: explanations.flatMap(({ commands }) => commands),
    checks: explanations.flatMap(({ checks }) => checks),
    shadowed: distinct(explanations.flatMap(({ shadowed }) => shadowed)),
  }
}

type RuleWriter = (match: { rule: Rule; layer?: Match["layer"] | undefined }) => ExplainedRule

/** Shows rules as they were written, before `~` and `$HOME` were replaced in them. */
function ruleWriter(given: Policy, applied: Policy): RuleWriter {
  const originals = new Map<Rule, Rule>()
  const pair = (written: readonly Rule[], expanded: readonly Rule[]) => {
    for (const [index, rule] of expanded.entries()) originals.set(rule, written[index] ?? rule)
  }
  for (const [index, { rules }] of applied.layers.entries()) pair(given.layers[index]?.rules ?? [], rules)
  pair(given.ceiling ?? [], applied.ceiling ?? [])
  return ({ rule, layer = "defaults" }) => {
    const { permission, pattern, action, source } = originals.get(rule) ?? rule
    const line = source?.line === undefined ? {} : { line: source.line }
    return { permission, pattern, action, source: source?.file ?? layer, ...line }
  }
}

function explainCheck(
  { check, judgement, judged }: DetailedVerdict["details"][number] & { judged: JudgedCheck | undefined },
  { policy }: DetailedVerdict,
  show: RuleWriter,
): ExplainedCheck {
  const { rule, layer, action } = judgement
  const shadowed = matchingRules(policy, check.permission, check.forms)
    .filter((match) => match.rule !== rule)
    .map(show)
  return {
    permission: check.permission,
    pattern: check.pattern,
    verdict: action,
    ...(rule ? { rule: show({ rule, layer }) } : {}),
    ...reasonOf(check, judged),
    ...(check.resolved === undefined ? {} : { resolved: check.resolved }),
    shadowed,
  }
}

function reasonOf(check: Check, judged: JudgedCheck | undefined): { reason?: string } {
  if (judged?.reason !== undefined) return { reason: judged.reason }
  return check.own ? { reason: "it is a file of the session itself" } : {}
}

function explainCommand({ argv, pattern, action, rule, reason }: JudgedCommand, show: RuleWriter) {
  return {
    argv,
    pattern,
    verdict: action,
    ...(rule ? { rule: show({ rule }) } : {}),
    ...(reason === undefined ? {} : { reason }),
  }
}

function distinct(rules: readonly ExplainedRule[]): ExplainedRule[] {
  return [...new Map(rules.map((rule) => [JSON.stringify(rule), rule])).values()]
}
