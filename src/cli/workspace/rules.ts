import { basename, extname } from "node:path"
import { configDirectories } from "../../config/location.ts"
import { wholeName } from "../../config/shown-name.ts"
import { knownPermissions, nearestPermission } from "../../permission/permission-names.ts"
import type { Layer } from "../../permission/policy.ts"
import { parseRuleFlag, permissionType } from "../../permission/rules.ts"
import { type ShadowedRule, shadowedRules } from "../../permission/shadowed-rules.ts"
import { findToolFiles } from "../../registry/files.ts"
import type { Rule } from "../../schema/permission.ts"
import { UsageError } from "../../util/errors.ts"
import type { Workspace } from "./workspace.ts"

/** Returns the layers of rules above the defaults and below the grants. Excludes agents' rules. */
export function layersOf({ config }: Workspace, flags: RuleFlags): Layer[] {
  const { user, project, untrusted, foreign, environment } = config.permission
  return [
    { name: "user", rules: user },
    { name: "project", rules: project },
    // The restrictions follow the project's rules, so that an allow rule in a trusted file cannot undo them.
    { name: "project", rules: untrusted, tightenOnly: true },
    { name: "project", rules: foreign, tightenOnly: true },
    // These rules belong to the user but take precedence over the project's rules.
    { name: "project", rules: environment },
    {
      name: "flags",
      rules: [
        ...(flags.allow ?? []).map((rule) => parseRuleFlag(rule, "allow")),
        ...(flags.deny ?? []).map((rule) => parseRuleFlag(rule, "deny")),
      ],
    },
  ]
}

/** Flags that change permissions. */
export interface RuleFlags {
  allow?: string[]
  deny?: string[]
  /** Whether to run commands in the sandbox without asking. */
  sandboxed?: boolean
}

/** Returns the rules in the config that can never take effect, including each agent's rules. */
export function shadowedConfigRules(workspace: Workspace): ShadowedRule[] {
  const layers = layersOf(workspace, {})
  const ofAgents = agentRulesets(workspace).flatMap((rules) => {
    const own = new Set(rules)
    // An agent's rules shadow other rules only for that agent, so only the agent's own rules are reported.
    return shadowedRules([...layers, { name: "agent", rules }]).filter(({ rule }) => own.has(rule))
  })
  return [...shadowedRules(layers), ...ofAgents]
}

/** Returns the rules of each agent in the config, in order of increasing precedence. */
export function agentRulesets({ config }: Pick<Workspace, "config">): Rule[][] {
  const { agentPermission, projectAgentPermission, environmentAgentPermission } = config
  return [agentPermission, projectAgentPermission, environmentAgentPermission].flatMap((rules) =>
    Object.values(rules),
  )
}

/** Returns the location of a rule, such as `tackle.json:4`. */
export function ruleOrigin({ source }: Rule): string {
  if (source === undefined) return ""
  return source.line === undefined ? source.file : `${source.file}:${source.line}`
}

/** Formats a rule and its location on one line. The action's column has `width` characters. */
export function describeRule(rule: Rule, width: number): string {
  const origin = ruleOrigin(rule)
  const what = `${wholeName(rule.permission)}: ${wholeName(rule.pattern)}`
  return `${rule.action.padEnd(width)} ${what}${origin === "" ? "" : `   (${wholeName(origin)})`}`
}

/**
 * Returns a warning for each permission name in the config that is probably misspelled, such as `bsh`. An unknown name
 * is not an error, because a custom tool, an MCP server or a plugin may have this name.
 */
export function misspeltPermissions(workspace: Workspace): string[] {
  const layers = layersOf(workspace, {}).map(({ rules }) => rules)
  return misspelt([...layers, ...agentRulesets(workspace)].flat(), workspace)
}

/**
 * Throws `UsageError` for a permission in the flags that is probably misspelled. `tools` returns the ids of all tools,
 * and is called only for a suspicious name.
 */
export async function checkRuleFlags(
  workspace: Workspace,
  flags: RuleFlags,
  tools: () => Promise<readonly string[]>,
): Promise<void> {
  const rules = layersOf(workspace, flags).flatMap((layer) => (layer.name === "flags" ? layer.rules : []))
  if (misspelt(rules, workspace).length === 0) return
  const ids = await tools()
  const [problem] = misspelt(
    rules.filter(({ permission }) => !ids.includes(permission)),
    workspace,
  )
  if (problem !== undefined) throw new UsageError(problem)
}

function misspelt(rules: readonly Rule[], workspace: Workspace): string[] {
  const isTool = customTools(workspace)
  const seen = new Set<string>()
  return rules.flatMap((rule) => {
    const { permission } = rule
    if (seen.has(permission) || /[*?]/.test(permission) || isTool(permission)) return []
    seen.add(permission)
    return describe(rule)
  })
}

/**
 * Returns a predicate for names that may belong to an MCP server or to a custom tool, trusted or not. Does not start
 * tools or servers.
 */
export function customTools(workspace: Workspace): (name: string) => boolean {
  const tools = findToolFiles(configDirectories(workspace).map(({ path }) => path)).map(toolName)
  const servers = Object.keys(workspace.config.config.mcp ?? {})
  return (name) =>
    tools.some((tool) => name === tool || name.startsWith(`${tool}_`)) ||
    servers.some((server) => name.startsWith(`${server}_`))
}

/** Returns the built-in permission that an unknown name probably means, or undefined for a known or dissimilar name. */
export function nearPermission(permission: string, workspace: Workspace): string | undefined {
  const isKnown = knownPermissions.includes(permissionType(permission)) || customTools(workspace)(permission)
  return isKnown ? undefined : nearestPermission(permission)
}

function describe(rule: Rule): string[] {
  const { permission } = rule
  const origin = ruleOrigin(rule)
  const prefix = origin === "" ? "" : `${origin}: `
  if (knownPermissions.includes(permissionType(permission))) return []
  const near = nearestPermission(permission)
  if (near === undefined) return []
  return [
    `${prefix}the rule for "${permission}" applies only to a tool with that name. Did you mean "${near}"?`,
  ]
}

function toolName(path: string): string {
  return basename(path, extname(path))
}
