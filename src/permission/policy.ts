import type { Action, Rule, Ruleset } from "../schema/permission.ts"
import { wildcardCovers, wildcardMatch, wildcardOverlap } from "../util/wildcard.ts"
import { concerns, expandHome } from "./rules.ts"

/** Rules from one source. */
export interface Layer {
  name: "defaults" | "user" | "project" | "agent" | "flags" | "grants"
  rules: Ruleset
  /** Whether the rules can only make a verdict stricter. Set, for example, for an untrusted project. */
  tightenOnly?: boolean
  /**
   * Whether the rules can turn an ask from a lower layer into an allow, but cannot override a deny from a lower layer
   * or lift the ceiling.
   */
  keepsDenies?: boolean
}

/**
 * All rules that apply to an agent. Later layers overrule earlier layers. `ceiling` contains rules that limit the
 * agent, such as the rules of a built-in agent. The stricter verdict of the layers and the ceiling applies, unless a
 * rule in the `agent` layer lifts the ceiling.
 */
export interface Policy {
  layers: readonly Layer[]
  ceiling?: Ruleset
  /**
   * The policy of the session that started this session as a subagent. The stricter verdict of the two policies
   * applies.
   */
  bound?: Policy
}

/** The rules' verdict. `rule` is the deciding rule, or undefined if no rule decided. */
export interface Judgement {
  action: Action
  rule?: Rule
  layer?: Layer["name"] | "ceiling"
  /** The second name for the permission, if a rule for that name decided. */
  name?: string
}

/** A second name for a permission, such as the id that the author of a custom tool chose. */
export interface Alias {
  name: string
  /**
   * Whether rules for this name can only make the verdict stricter, because another tool or a permission has the same
   * name.
   */
  tightenOnly: boolean
}

/** Options that limit which rules can decide. */
export interface JudgeOptions {
  /** A second name for the permission. See {@link judge}. */
  alias?: Alias | undefined
  /** Returns false for an allow rule that must be ignored. Default: no rule is ignored. */
  counts?: (rule: Rule) => boolean
  /**
   * Additional spellings that only a deny rule can match, such as the bare name of a program that is called by its
   * path.
   */
  denyForms?: readonly string[]
  /**
   * A pattern that covers all values that are possible at run time. A rule that refuses some of these values turns an
   * allow into an ask.
   */
  span?: string
  /** The actions that count as a refusal for `span`. Default: `deny` and `ask`. */
  spanRefusals?: readonly Action[]
  /**
   * Returns true if the rule names the unknown part. If this rule decides, other rules are not compared with `span`.
   */
  namesSpan?: (rule: Rule) => boolean
}

/**
 * Returns the verdict on one text. `forms` lists the spellings of the text, such as a relative and an absolute path. A
 * rule matches if it matches one of the spellings. If no rule matches, the verdict is `ask`. A deny in the user layer
 * is final. A grant cannot override a deny.
 *
 * If the permission has a second name, a rule for only one of the names overrules rules for both names, such as rules
 * for `*`. If each name has its own matching rule, the stricter rule applies.
 */
export function judge(
  policy: Policy,
  permission: string,
  forms: readonly string[],
  options: JudgeOptions = {},
): Judgement {
  const own = judgeNames(policy, permission, forms, options)
  if (!policy.bound) return own
  const bound = judge(policy.bound, permission, forms, options)
  return isStricter(bound.action, own.action) ? bound : own
}

function judgeNames(
  policy: Policy,
  permission: string,
  forms: readonly string[],
  options: JudgeOptions,
): Judgement {
  const own = judgeAlone(policy, permission, forms, options)
  const { alias } = options
  if (!alias) return own
  const other = { ...judgeAlone(policy, alias.name, forms, options), name: alias.name }
  const stricter = isStricter(other.action, own.action) ? other : own
  // A rule that concerns only one of the names overrules a rule that concerns both.
  const isOwn = own.rule !== undefined && !concerns(own.rule, alias.name)
  const isOther = other.rule !== undefined && !concerns(other.rule, permission)
  if (alias.tightenOnly) return isOther && other.layer !== "defaults" ? stricter : own
  if (isOwn !== isOther) return isOwn ? own : other
  return stricter
}

function judgeAlone(
  policy: Policy,
  permission: string,
  forms: readonly string[],
  options: JudgeOptions,
): Judgement {
  const judgement = judgeForms(policy, permission, forms, options)
  if (judgement.action === "deny") return judgement
  const denyForms = options.denyForms ?? []
  const denies = denyForms.length === 0 ? [] : deniesOf(policy, permission)
  for (const form of denyForms) {
    if (forms.includes(form) || !denies.some(({ pattern }) => wildcardMatch(form, pattern))) continue
    const denied = judgeForms(policy, permission, [form], {})
    // A deny that also matches `forms` was judged above, together with the rules after it.
    const isJudged = denied.rule !== undefined && matches(denied.rule, permission, forms)
    if (denied.action === "deny" && !isJudged) return denied
  }
  if (judgement.action === "ask" || options.span === undefined) return judgement
  if (judgement.rule && options.namesSpan?.(judgement.rule)) return judgement
  return possibleRefusal(policy, permission, options.span, options.spanRefusals) ?? judgement
}

/**
 * Lists every rule in the layers and the ceiling that matches one of the spellings, including overruled rules. The
 * lowest layer comes first. Does not list the rules of `bound`.
 */
export function matchingRules(
  policy: Policy,
  permission: string,
  forms: readonly string[],
  alias?: Alias,
): Required<Pick<Judgement, "rule" | "layer">>[] {
  const groups = [...policy.layers, { name: "ceiling" as const, rules: policy.ceiling ?? [] }]
  return groups.flatMap(({ name, rules }) =>
    rules
      .filter(
        (rule) =>
          matches(rule, permission, forms) || (alias !== undefined && matches(rule, alias.name, forms)),
      )
      .map((rule) => ({ rule, layer: name })),
  )
}

/**
 * Returns true unless the policy denies every request for this permission. Tools that need a permission that is always
 * denied are not offered. Judges the pattern of each rule that is not a deny, because only such a rule can be an
 * exception to a general deny.
 */
export function isOffered(policy: Policy, permission: string, alias?: Alias): boolean {
  const isPossible = (text: string) => judge(policy, permission, [text], { alias }).action !== "deny"
  return (
    isPossible(wildcardProbe) ||
    allRules(policy).some(({ action, pattern }) => action !== "deny" && isPossible(pattern))
  )
}

/** Returns the deny rules for a permission. */
export function deniesOf(policy: Policy, permission: string): Rule[] {
  return allRules(policy).filter((rule) => rule.action === "deny" && concerns(rule, permission))
}

/** Returns all rules in a policy, including its ceiling and the policies that bound it. */
export function allRules({ layers, ceiling = [], bound }: Policy): Rule[] {
  return [...layers.flatMap((layer) => layer.rules), ...ceiling, ...(bound ? allRules(bound) : [])]
}

/**
 * Returns one rule for each permission and pattern in the policy, with the action that the policy decides for it. The
 * result is one list in which the last matching rule decides. Where patterns overlap, {@link judge} can be stricter.
 */
export function effectiveRules(policy: Policy): Pick<Rule, "permission" | "pattern" | "action">[] {
  const byKey = new Map(
    allRules(policy).map(({ permission, pattern }) => [
      JSON.stringify([permission, pattern]),
      { permission, pattern },
    ]),
  )
  return [...byKey.values()].map(({ permission, pattern }) => {
    const text = /^[*?]+$/.test(pattern) ? wildcardProbe : pattern
    return { permission, pattern, action: judge(policy, permission, [text], namedRules(permission)).action }
  })
}

/** Returns the policy with `~` and `$HOME` expanded in its patterns. */
export function expandPolicy(policy: Policy, home: string): Policy {
  const expand = (rules: Ruleset): Ruleset =>
    rules.map((rule) => {
      const pattern = expandHome(rule.pattern, home)
      return pattern === rule.pattern ? rule : { ...rule, pattern }
    })
  const layers = policy.layers.map((layer) => ({ ...layer, rules: expand(layer.rules) }))
  const { ceiling, bound } = policy
  return { layers, ceiling: ceiling && expand(ceiling), bound: bound && expandPolicy(bound, home) }
}

/**
 * Returns the policy without the rules that ask for every pattern of the permission, and with `rule` at the end of its
 * defaults.
 */
export function withoutGeneralAsks(policy: Policy, permission: string, rule: Rule): Policy {
  const narrow = (rules: Ruleset) =>
    rules.filter(
      (each) => each.action !== "ask" || !concerns(each, permission) || !wildcardCovers(each.pattern, "*"),
    )
  const { ceiling, bound } = policy
  return withDefault(
    {
      layers: policy.layers.map((layer) => ({ ...layer, rules: narrow(layer.rules) })),
      ceiling: ceiling && narrow(ceiling),
      bound: bound && withoutGeneralAsks(bound, permission, rule),
    },
    rule,
  )
}

/**
 * Returns the policy with an additional rule at the end of its defaults. Every rule in a later layer overrules this
 * rule.
 */
export function withDefault(policy: Policy, rule: Rule): Policy {
  const layers = policy.layers.map((layer) =>
    layer.name === "defaults" ? { ...layer, rules: [...layer.rules, rule] } : layer,
  )
  return { ...policy, layers, bound: policy.bound && withDefault(policy.bound, rule) }
}

/** Returns the policy with an additional ceiling that rules in the `agent` layer cannot lift. */
export function withFixedCeiling(policy: Policy, ceiling: Ruleset): Policy {
  const layers = policy.layers.map(
    (layer): Layer => (layer.name === "agent" ? { ...layer, name: "project" } : layer),
  )
  return { ...policy, bound: { layers, ceiling, bound: policy.bound } }
}

/** Returns true if `a` is stricter than `b`. */
export function isStricter(a: Action, b: Action): boolean {
  return strictness[a] > strictness[b]
}

const strictness: Record<Action, number> = { allow: 0, ask: 1, deny: 2 }

/** A text that only patterns made of wildcards match. */
export const wildcardProbe = "\u0000".repeat(16)

const onlyByName: ReadonlySet<string> = new Set(["network", "private_network", "sandbox_escape", "doom_loop"])

/**
 * Returns options for `doom_loop`, and for a sandbox or network permission. Only a rule with the permission's own name
 * can allow it. For example, `"*": "allow"` lets tools run, but does not let them leave the sandbox. Returns no options
 * for other permissions.
 */
export function namedRules(permission: string): JudgeOptions {
  return onlyByName.has(permission) ? { counts: (rule) => rule.permission === permission } : {}
}

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
 * Returns an `ask` if a rule refuses part of the span. An `allow` rule that covers the whole span cancels earlier
 * rules, except `deny` rules in the user layer.
 */
function possibleRefusal(
  policy: Policy,
  permission: string,
  span: string,
  refusals: readonly Action[] = ["deny", "ask"],
): Judgement | undefined {
  // Determines which earlier rules are canceled: no rules, `ask` rules, or all rules except `deny` rules in the user
  // layer.
  let cancelled: "nothing" | "asks" | "all" = "nothing"
  let lifted = false
  for (const layer of policy.layers.toReversed()) {
    const { name, rules, tightenOnly, keepsDenies } = layer
    if (cancelled === "all" && name !== "user") continue
    const found = lastDecisive(rules, permission, span, cancelled === "nothing" ? refusals : ["deny"])
    if (found && found.action !== "allow") return { action: "ask", rule: found, layer: name }
    if (found && !tightenOnly && cancelled !== "all") cancelled = keepsDenies ? "asks" : "all"
    if (found && liftsCeiling(layer)) lifted = true
  }
  const bound = lifted ? undefined : lastDecisive(policy.ceiling ?? [], permission, span, refusals)
  if (!bound || bound.action === "allow") return undefined
  return { action: "ask", rule: bound, layer: "ceiling" }
}

function liftsCeiling({ name, keepsDenies }: Layer): boolean {
  return name === "agent" && !keepsDenies
}

/** Returns the last rule that refuses part of the span or allows all of it. */
function lastDecisive(
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
