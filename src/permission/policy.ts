import type { Action, Rule, Ruleset } from "../schema/permission.ts"
import { wildcardCovers, wildcardMatch, wildcardOverlap } from "../util/wildcard.ts"
import { concerns, expandHome } from "./rules.ts"

/** Rules of one origin. */
export interface Layer {
  name: "defaults" | "user" | "project" | "agent" | "flags" | "grants"
  rules: Ruleset
  /** An untrusted project's: they may make a verdict stricter and nothing else. */
  tightenOnly?: boolean
  /** They may allow what would be asked, and nothing that a layer below or a ceiling denies. */
  keepsDenies?: boolean
}

/**
 * All rules that hold for an agent. Later layers win. `ceiling` are a built-in agent's own rules: the stricter of both
 * verdicts holds, unless a rule of the layer `agent` lifts it.
 */
export interface Policy {
  layers: readonly Layer[]
  ceiling?: Ruleset
  /** What the session may do that started this one as a subagent: the stricter of both verdicts holds. */
  bound?: Policy
}

/** What the rules say. Without a rule nothing matched, and the action is `ask`. */
export interface Judgement {
  action: Action
  rule?: Rule
  layer?: Layer["name"] | "ceiling"
}

/** Narrows what a rule may decide. */
export interface JudgeOptions {
  /** An allow counts only where this holds of its rule; others are passed over. */
  counts?: (rule: Rule) => boolean
  /** Spellings that nothing but a deny may match, such as the bare name of a program that was given with its path. */
  denyForms?: readonly string[]
  /** A pattern over all that the thing may turn out to be: a rule that may then say no makes the verdict an ask. */
  span?: string
  /** Which actions of such a rule count. Default: both. */
  spanRefusals?: readonly Action[]
}

/**
 * The verdict on one thing. `forms` are its spellings, such as a path relative and absolute: a rule matches if it
 * matches one of them. Never loosened: a deny of the user's own layer, a deny by a grant.
 */
export function judge(
  policy: Policy,
  permission: string,
  forms: readonly string[],
  options: JudgeOptions = {},
): Judgement {
  const own = judgeAlone(policy, permission, forms, options)
  if (!policy.bound) return own
  const bound = judge(policy.bound, permission, forms, options)
  return isStricter(bound.action, own.action) ? bound : own
}

function judgeAlone(
  policy: Policy,
  permission: string,
  forms: readonly string[],
  options: JudgeOptions,
): Judgement {
  const judgement = judgeForms(policy, permission, forms, options)
  if (judgement.action === "deny") return judgement
  for (const form of options.denyForms ?? []) {
    if (forms.includes(form)) continue
    const denied = judgeForms(policy, permission, [form], {})
    // A deny that means the thing itself too was weighed above, with what comes after it.
    const isWeighed = denied.rule !== undefined && matches(denied.rule, permission, forms)
    if (denied.action === "deny" && !isWeighed) return denied
  }
  if (judgement.action === "ask" || options.span === undefined) return judgement
  return possibleRefusal(policy, permission, options.span, options.spanRefusals) ?? judgement
}

/** A rule that matches, and the layer it stands in. */
export interface Match {
  rule: Rule
  layer: Layer["name"] | "ceiling"
}

/** Every rule that matches one of the spellings, from the lowest layer up, whatever becomes of it. */
export function matchingRules(policy: Policy, permission: string, forms: readonly string[]): Match[] {
  const groups = [...policy.layers, { name: "ceiling" as const, rules: policy.ceiling ?? [] }]
  return groups.flatMap(({ name, rules }) =>
    rules.filter((rule) => matches(rule, permission, forms)).map((rule) => ({ rule, layer: name })),
  )
}

/**
 * False where nothing of this type could ever be allowed or asked: the tool need not be shown. Every pattern of a rule
 * is tried as a text, since only what some rule names can escape a general deny.
 */
export function isOffered(policy: Policy, permission: string): boolean {
  const patterns = allRules(policy)
    .filter((rule) => rule.action !== "deny")
    .map((rule) => rule.pattern)
  return [unnamed, ...patterns].some((text) => judge(policy, permission, [text]).action !== "deny")
}

function allRules({ layers, ceiling = [], bound }: Policy): Rule[] {
  return [...layers.flatMap((layer) => layer.rules), ...ceiling, ...(bound ? allRules(bound) : [])]
}

/** The same policy with `~` and `$HOME` of its patterns written out. */
export function expandPolicy(policy: Policy, home: string): Policy {
  const expand = (rules: Ruleset): Ruleset =>
    rules.map((rule) => {
      const pattern = expandHome(rule.pattern, home)
      return pattern === rule.pattern ? rule : { ...rule, pattern }
    })
  const layers = policy.layers.map((layer) => ({ ...layer, rules: expand(layer.rules) }))
  const expanded: Policy = { layers }
  if (policy.ceiling) expanded.ceiling = expand(policy.ceiling)
  if (policy.bound) expanded.bound = expandPolicy(policy.bound, home)
  return expanded
}

/** The same policy with one more default: whatever any later layer says still wins. */
export function withDefault(policy: Policy, rule: Rule): Policy {
  const layers = policy.layers.map((layer) =>
    layer.name === "defaults" ? { ...layer, rules: [...layer.rules, rule] } : layer,
  )
  return policy.bound ? { ...policy, layers, bound: withDefault(policy.bound, rule) } : { ...policy, layers }
}

/** The same policy under one more ceiling, which the rules of the layer `agent` do not lift. */
export function withFixedCeiling(policy: Policy, ceiling: Ruleset): Policy {
  const layers = policy.layers.map(
    (layer): Layer => (layer.name === "agent" ? { ...layer, name: "project" } : layer),
  )
  return { ...policy, bound: { layers, ceiling, ...(policy.bound ? { bound: policy.bound } : {}) } }
}

/** True if `a` is stricter than `b`. */
export function isStricter(a: Action, b: Action): boolean {
  return strictness[a] > strictness[b]
}

const strictness: Record<Action, number> = { allow: 0, ask: 1, deny: 2 }

/** A text that no rule names: only patterns made of wildcards match it. */
const unnamed = "\u0000".repeat(16)

function matches(rule: Rule, permission: string, forms: readonly string[]): boolean {
  return concerns(rule, permission) && forms.some((form) => wildcardMatch(form, rule.pattern))
}

function judgeForms(
  policy: Policy,
  permission: string,
  forms: readonly string[],
  { counts }: JudgeOptions,
): Judgement {
  const lastMatch = (rules: Ruleset): Rule | undefined =>
    rules.findLast(
      (rule) => matches(rule, permission, forms) && (rule.action !== "allow" || !counts || counts(rule)),
    )

  let current: Judgement = { action: "ask" }
  let userDeny: Judgement | undefined
  let lifted = false
  for (const layer of policy.layers) {
    const { name, rules, tightenOnly } = layer
    const rule = lastMatch(rules)
    if (!rule) continue
    const found: Judgement = { action: rule.action, rule, layer: name }
    if (name === "user" && rule.action === "deny") userDeny = found
    if (liftsCeiling(layer) && rule.action !== "deny") lifted = true
    if (tightenOnly && !isStricter(rule.action, current.action)) continue
    if ((name === "grants" || layer.keepsDenies) && current.action === "deny") continue
    current = found
  }
  if (userDeny) return userDeny

  const bound = lifted ? undefined : lastMatch(policy.ceiling ?? [])
  if (bound && isStricter(bound.action, current.action)) {
    return { action: bound.action, rule: bound, layer: "ceiling" }
  }
  return current
}

/**
 * The ask that is due where a rule may refuse something the span stands for. A later allow of all that the span stands
 * for puts earlier rules to rest, except those of the user's own layer.
 */
function possibleRefusal(
  policy: Policy,
  permission: string,
  span: string,
  refusals: readonly Action[] = ["deny", "ask"],
): Judgement | undefined {
  // How much later allows have put to rest: nothing, what asks, or all but denies of the user's own layer.
  let settled: "nothing" | "asks" | "all" = "nothing"
  let lifted = false
  for (const layer of policy.layers.toReversed()) {
    const { name, rules, tightenOnly, keepsDenies } = layer
    if (settled === "all" && name !== "user") continue
    const found = lastWord(rules, permission, span, settled === "nothing" ? refusals : ["deny"])
    if (found && found.action !== "allow") return { action: "ask", rule: found, layer: name }
    if (found && !tightenOnly && settled !== "all") settled = keepsDenies ? "asks" : "all"
    if (found && liftsCeiling(layer)) lifted = true
  }
  const bound = lifted ? undefined : lastWord(policy.ceiling ?? [], permission, span, refusals)
  if (!bound || bound.action === "allow") return undefined
  return { action: "ask", rule: bound, layer: "ceiling" }
}

function liftsCeiling({ name, keepsDenies }: Layer): boolean {
  return name === "agent" && !keepsDenies
}

/** The last rule that may refuse a part of the span, or that allows all of it. */
function lastWord(
  rules: Ruleset,
  permission: string,
  span: string,
  refusals: readonly Action[],
): Rule | undefined {
  return rules.findLast((rule) => {
    if (!concerns(rule, permission)) return false
    if (rule.action === "allow") return wildcardCovers(rule.pattern, span)
    return refusals.includes(rule.action) && wildcardOverlap(rule.pattern, span)
  })
}
