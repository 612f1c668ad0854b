import { join } from "node:path"
import * as z from "zod"
import { Action, type Rule, type RuleSource, type Ruleset } from "../schema/permission.ts"
import { UsageError } from "../util/errors.ts"
import { wildcardMatch } from "../util/wildcard.ts"

/** The action for a pattern, optionally with examples. */
const PatternConfig = z.lazy(() =>
  z.union([
    Action,
    z.strictObject({
      action: Action,
      examples: z
        .partialRecord(Action, z.array(z.string()))
        .optional()
        .describe(
          "Example patterns, grouped by the verdict that the rules must return for them. Checked when the config file is read.",
        ),
    }),
  ]),
)

/**
 * The `permission` config field: one action for everything, one per permission, or one per permission and pattern.
 * `examples` are checked when the config file is read and have no other effect.
 */
export const PermissionConfig = z.lazy(() =>
  z.union([Action, z.record(z.string(), z.union([Action, z.record(z.string(), PatternConfig)]))]),
)
export type PermissionConfig = z.infer<typeof PermissionConfig>

/**
 * Returns the rules in the lowest layer. These rules ask for every permission that they do not allow or deny. Commands
 * that are proved to only read are also allowed: see `shell/read-only-proof.ts`.
 */
export function defaultRules(): Rule[] {
  const rule = (permission: string, pattern: string, action: Action): Rule => ({
    permission,
    pattern,
    action,
    source: { file: "defaults" },
  })
  return [
    rule("*", "*", "ask"),
    ...["read", "glob", "grep", "list", "todo", "skill", "task", "lsp", "tool_search"].map((name) =>
      rule(name, "*", "allow"),
    ),
    // A language server is a program that may run project code.
    rule("lsp", "start *", "ask"),
    rule("read", "*.env", "ask"),
    rule("read", "*.env.*", "ask"),
    rule("read", "*.env.example", "allow"),
    rule("external_directory", "*", "ask"),
    rule("doom_loop", "*", "ask"),
    // Hosts outside the public internet belong to this machine or its private network.
    rule("private_network", "*", "deny"),
  ]
}

/** Returns the last rule whose permission and pattern both match, or undefined if no rule matches. */
export function evaluate(permission: string, pattern: string, ruleset: Ruleset): Rule | undefined {
  return ruleset.findLast((rule) => concerns(rule, permission) && wildcardMatch(pattern, rule.pattern))
}

/** Returns true if the rule applies to this permission. Aliases count as the same permission. */
export function concerns(rule: Rule, permission: string): boolean {
  if (rule.permission === permission || rule.permission === "*") return true
  return wildcardMatch(permissionType(permission), permissionType(rule.permission))
}

/**
 * Returns the permission that a tool needs: `edit` for `write` and `apply_patch`, `todo` for the to-do tools. Returns
 * any other name unchanged. A rule can therefore name the tool instead of the permission.
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
 * Returns the rules from a config value in the order of its keys. JavaScript objects list integer-like keys first, so a
 * loader that can access the file's tokens builds the rules from the tokens instead.
 */
export function rulesFromObject(value: PermissionConfig, source?: RuleSource): Rule[] {
  if (typeof value === "string") return [{ permission: "*", pattern: "*", action: value, source }]
  return Object.entries(value).flatMap(([permission, patterns]): Rule[] => {
    if (typeof patterns === "string") return [{ permission, pattern: "*", action: patterns, source }]
    return Object.entries(patterns).map(([pattern, value]) => ({
      permission,
      pattern,
      action: typeof value === "string" ? value : value.action,
      source,
    }))
  })
}

/**
 * Parses a flag such as `--allow 'bash:git *'` or `--deny edit`. Throws `UsageError` if the permission or the pattern
 * is empty, or if the permission contains spaces, quotes or parentheses.
 */
export function parseRuleFlag(text: string, action: "allow" | "deny"): Rule {
  const colon = text.indexOf(":")
  const permission = (colon === -1 ? text : text.slice(0, colon)).trim()
  const pattern = colon === -1 ? "*" : text.slice(colon + 1)
  if (permission === "" || pattern === "" || /[\s()"']/.test(permission)) {
    throw new UsageError(
      `Invalid rule: --${action} "${text}". Expected permission or permission:pattern, such as 'bash:git *'.`,
    )
  }
  return { permission, pattern, action, source: { file: `--${action}` } }
}

/** Expands `~` or `$HOME` at the start of a pattern. */
export function expandHome(pattern: string, home: string): string {
  for (const name of ["~", "$HOME"]) {
    if (pattern === name) return home
    if (pattern.startsWith(`${name}/`)) return join(home, pattern.slice(name.length))
  }
  return pattern
}
