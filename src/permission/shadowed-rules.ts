import type { Rule, Ruleset } from "../schema/permission.ts"
import { wildcardCovers, wildcardOverlap } from "../util/wildcard.ts"
import { isStricter, type Layer } from "./policy.ts"
import { namesProtected, protectionOf } from "./protected-files.ts"
import { permissionType } from "./rules.ts"

/** A rule that decides nothing, and the one that decides in its place. */
export interface ShadowedRule {
  rule: Rule
  by: Rule
}

/**
 * Rules of the person and the project that can never decide: a later one covers all that they match, or a final deny
 * does. Defaults and grants are left out: the one is there to be overruled, the other comes and goes. Of two allows the
 * narrower one is told only where both are the same, since it may name what the wider one does not reach. Says nothing
 * where only several rules together cover one.
 */
export function shadowedRules(layers: readonly Layer[]): ShadowedRule[] {
  const written = layers.filter(({ name }) => name !== "defaults" && name !== "grants")
  const found: ShadowedRule[] = []
  for (const [index, layer] of written.entries()) {
    for (const [at, rule] of layer.rules.entries()) {
      const by =
        laterInLayer(rule, layer.rules.slice(at + 1)) ??
        finalDeny(rule, written.slice(0, index)) ??
        laterLayer(rule, layer, written.slice(index + 1))
      if (by) found.push({ rule, by })
    }
  }
  return found
}

function laterInLayer(rule: Rule, later: Ruleset): Rule | undefined {
  return later.find((other) => overrules(other, rule))
}

/** A deny of the person's own, without an exception behind it. */
function finalDeny(rule: Rule, earlier: readonly Layer[]): Rule | undefined {
  if (rule.action === "deny") return undefined
  for (const { name, rules } of earlier) {
    if (name !== "user") continue
    const deny = rules.find(
      (other, at) =>
        other.action === "deny" &&
        covers(other, rule) &&
        !rules.slice(at + 1).some((next) => meets(next, rule)),
    )
    if (deny) return deny
  }
  return undefined
}

function laterLayer(rule: Rule, layer: Layer, later: readonly Layer[]): Rule | undefined {
  if (layer.name === "user" && rule.action === "deny") return undefined
  for (const { rules, tightenOnly } of later) {
    // In a layer that only tightens an exception behind it would leave the verdict of the layers below.
    const tightens = (entry: Rule, at: number) =>
      isStricter(entry.action, rule.action) && !rules.slice(at + 1).some((next) => meets(next, rule))
    const other = rules.find((entry, at) => overrules(entry, rule) && (!tightenOnly || tightens(entry, at)))
    if (other) return other
  }
  return undefined
}

function overrules(other: Rule, rule: Rule): boolean {
  if (!covers(other, rule)) return false
  if (other.action !== "allow") return true
  if (rule.action === "allow") return other.pattern === rule.pattern
  return reaches(other, rule)
}

/** False where the rule names a file that an allow has to name as well before it counts. */
function reaches(allow: Rule, rule: Rule): boolean {
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

/** True if both may be about one thing. */
function meets(a: Rule, b: Rule): boolean {
  return (
    wildcardOverlap(permissionType(a.permission), permissionType(b.permission)) &&
    wildcardOverlap(a.pattern, b.pattern)
  )
}
