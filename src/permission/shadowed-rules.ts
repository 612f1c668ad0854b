import type { Rule, Ruleset } from "../schema/permission.ts"
import { wildcardCovers, wildcardOverlap } from "../util/wildcard.ts"
import { isStricter, type Layer } from "./policy.ts"
import { namesProtected, protectionOf } from "./protected-files.ts"
import { permissionType } from "./rules.ts"

/** A rule that can never decide, and the rule that decides instead. */
export interface ShadowedRule {
  rule: Rule
  by: Rule
}

/**
 * Lists the rules that can never decide, because a later rule or a final deny covers everything that they match. Omits
 * defaults, which are meant to be overruled, and grants, which are not part of the config. If one allow covers another,
 * lists the covered rule only if both patterns are equal, because a narrower pattern can name a protected file. Does
 * not detect a rule that is covered only by several other rules together.
 */
export function shadowedRules(layers: readonly Layer[]): ShadowedRule[] {
  const written = layers.filter(({ name }) => name !== "defaults" && name !== "grants")
  const found: ShadowedRule[] = []
  for (const [index, layer] of written.entries()) {
    for (const [at, rule] of layer.rules.entries()) {
      const by =
        layer.rules.slice(at + 1).find((later) => overrules(later, rule)) ??
        finalDeny(rule, written.slice(0, index)) ??
        laterLayer(rule, layer, written.slice(index + 1))
      if (by) found.push({ rule, by })
    }
  }
  return found
}

/** Returns a deny rule in the user layer that covers the rule, if no later rule is an exception to it. */
function finalDeny(rule: Rule, earlier: readonly Layer[]): Rule | undefined {
  if (rule.action === "deny") return undefined
  for (const { rules } of earlier.filter(({ name }) => name === "user")) {
    const deny = rules.find(
      (other, at) => other.action === "deny" && covers(other, rule) && !hasException(rules, at, rule),
    )
    if (deny) return deny
  }
  return undefined
}

function laterLayer(rule: Rule, layer: Layer, later: readonly Layer[]): Rule | undefined {
  if (layer.name === "user" && rule.action === "deny") return undefined
  for (const { rules, tightenOnly } of later) {
    // In a layer that can only make verdicts stricter, an exception after the deny leaves the verdict of lower layers
    // unchanged.
    const tightens = (entry: Rule, at: number) =>
      isStricter(entry.action, rule.action) && !hasException(rules, at, rule)
    const other = rules.find((entry, at) => overrules(entry, rule) && (!tightenOnly || tightens(entry, at)))
    if (other) return other
  }
  return undefined
}

function overrules(other: Rule, rule: Rule): boolean {
  if (!covers(other, rule)) return false
  if (other.action !== "allow") return true
  if (rule.action === "allow") return other.pattern === rule.pattern
  return appliesTo(other, rule)
}

/** Returns false if the rule names a protected file that the allow rule does not name. */
function appliesTo(allow: Rule, rule: Rule): boolean {
  const type = permissionType(rule.permission)
  if (type !== "read" && type !== "edit") return true
  const protection = protectionOf(rule.pattern, type)
  return protection === undefined || namesProtected(allow.pattern, protection)
}

function covers(wide: Rule, narrow: Rule): boolean {
  return (
    wildcardCovers(permissionType(wide.permission), permissionType(narrow.permission)) &&
    wildcardCovers(wide.pattern, narrow.pattern)
  )
}

/** Returns true if a rule after this index can match a request that the given rule matches. */
function hasException(rules: Ruleset, index: number, { permission, pattern }: Rule): boolean {
  const type = permissionType(permission)
  return rules
    .slice(index + 1)
    .some(
      (next) =>
        wildcardOverlap(permissionType(next.permission), type) && wildcardOverlap(next.pattern, pattern),
    )
}
