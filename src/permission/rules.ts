import { join } from "node:path"
import * as z from "zod"
import { Action, type Rule, type RuleSource, type Ruleset } from "../schema/permission.ts"
import { UsageError } from "../util/errors.ts"
import { wildcardMatch } from "../util/wildcard.ts"

/** What a pattern may be given: its action, alone or with examples of what that comes to. */
const PatternConfig = z.lazy(() =>
  z.union([
    Action,
    z.strictObject({
      action: Action,
      examples: z
        .partialRecord(Action, z.array(z.string()))
        .optional()
        .describe("Patterns by the verdict they must get; held against the rules when a config file is read"),
    }),
  ]),
)

/**
 * `permission` of the config: one action for all, or by permission type, or by type and pattern. `examples` are checked
 * where rules are read from a file, and count for nothing else.
 */
export const PermissionConfig = z.lazy(() =>
  z.union([Action, z.record(z.string(), z.union([Action, z.record(z.string(), PatternConfig)]))]),
)
export type PermissionConfig = z.infer<typeof PermissionConfig>

/** The last rule whose permission and pattern both match, or nothing. */
export function evaluate(permission: string, pattern: string, ruleset: Ruleset): Rule | undefined {
  return ruleset.findLast((rule) => concerns(rule, permission) && wildcardMatch(pattern, rule.pattern))
}

/** True if the rule is about this type of permission, whichever of its names either uses. */
export function concerns(rule: Rule, permission: string): boolean {
  if (rule.permission === permission || rule.permission === "*") return true
  return wildcardMatch(permissionType(permission), permissionType(rule.permission))
}

/**
 * The type that a tool's id asks as: `write` and `apply_patch` are `edit`, the to-do tools `todo`. So a rule that
 * names the tool holds just as well.
 */
export function permissionType(name: string): string {
  return aliases.get(name) ?? name
}

const aliases = new Map([
  ["write", "edit"],
  ["apply_patch", "edit"],
  ["todowrite", "todo"],
  ["todoread", "todo"],
])

/**
 * The rules of a config value in the order of its keys. Keys that look like integers come first in any JavaScript
 * object: a loader that has the tokens of the file builds its rules from them instead.
 */
export function rulesFromObject(value: PermissionConfig, source?: RuleSource): Rule[] {
  const origin = source === undefined ? {} : { source }
  if (typeof value === "string") return [{ permission: "*", pattern: "*", action: value, ...origin }]
  return Object.entries(value).flatMap(([permission, patterns]): Rule[] => {
    if (typeof patterns === "string") return [{ permission, pattern: "*", action: patterns, ...origin }]
    return Object.entries(patterns).map(([pattern, value]) => ({
      permission,
      pattern,
      action: typeof value === "string" ? value : value.action,
      ...origin,
    }))
  })
}

/** The rule of a flag such as `--allow 'bash:git *'` or `--deny edit`. Throws `UsageError` without a permission. */
export function parseRuleFlag(text: string, action: "allow" | "deny"): Rule {
  const colon = text.indexOf(":")
  const permission = (colon === -1 ? text : text.slice(0, colon)).trim()
  const pattern = colon === -1 ? "*" : text.slice(colon + 1)
  if (permission === "" || pattern === "") {
    throw new UsageError(
      `--${action} "${text}" is no rule. Write permission or permission:pattern, such as 'bash:git *'.`,
    )
  }
  return { permission, pattern, action, source: { file: `--${action}` } }
}

/** A pattern with a leading `~` or `$HOME` written out. */
export function expandHome(pattern: string, home: string): string {
  for (const name of ["~", "$HOME"]) {
    if (pattern === name) return home
    if (pattern.startsWith(`${name}/`)) return join(home, pattern.slice(name.length))
  }
  return pattern
}
