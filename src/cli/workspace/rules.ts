import { basename, extname } from "node:path"
import { configDirectories } from "../../config/location.ts"
import type { Layer } from "../../permission/policy.ts"
import { parseRuleFlag, permissionType } from "../../permission/rules.ts"
import { type ShadowedRule, shadowedRules } from "../../permission/shadowed-rules.ts"
import { findToolFiles } from "../../registry/files.ts"
import type { Rule } from "../../schema/permission.ts"
import { nearNames } from "../../util/similarity.ts"
import type { Workspace } from "./workspace.ts"

/** The layers of rules above the defaults and below what was granted, an agent's own left out. */
export function layersOf({ config }: Workspace, flags: RuleFlags): Layer[] {
  const { user, project, untrusted, environment } = config.permission
  return [
    { name: "user", rules: user },
    { name: "project", rules: project },
    // Last of the project's, so that an allow of a trusted file does not undo what these tighten.
    { name: "project", rules: untrusted, tightenOnly: true },
    // The person's own words, though they stand above the project's.
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

/** Flags that change what may be done. */
export interface RuleFlags {
  allow?: string[]
  deny?: string[]
}

/** The rules of the config that can never decide: for everyone, and of each agent's own. */
export function shadowedConfigRules(workspace: Workspace): ShadowedRule[] {
  const layers = layersOf(workspace, {})
  const ofAgents = agentRulesets(workspace).flatMap((rules) => {
    const own = new Set(rules)
    // What an agent's rules make of the others holds for that agent alone.
    return shadowedRules([...layers, { name: "agent", rules }]).filter(({ rule }) => own.has(rule))
  })
  return [...shadowedRules(layers), ...ofAgents]
}

/** What the config says of single agents: for each of its origins the rules of each agent, in rising precedence. */
export function agentRulesets({ config }: Pick<Workspace, "config">): Rule[][] {
  const { agentPermission, projectAgentPermission, environmentAgentPermission } = config
  return [agentPermission, projectAgentPermission, environmentAgentPermission].flatMap((rules) =>
    Object.values(rules),
  )
}

/** Where a rule stands: `tackle.json:4`. */
export function ruleOrigin({ source }: Rule): string {
  if (source === undefined) return ""
  return source.line === undefined ? source.file : `${source.file}:${source.line}`
}

/** What Tackle itself asks for: its tools, and what they ask for beside. */
export const knownPermissions: readonly string[] = (
  "bash batch codesearch doom_loop edit external_directory glob grep invalid job list lsp network plan_enter plan_exit " +
  "private_network question read sandbox_escape skill task todo tool_search webfetch websearch"
).split(" ")

/**
 * A line for each name in the rules that is no permission but nearly one, such as `bsh`. A name may also be that
 * of a custom tool, an MCP server's or a plugin's, so this is no error.
 */
export function misspeltPermissions(workspace: Workspace, flags: RuleFlags): string[] {
  const layers = layersOf(workspace, flags).map(({ rules }) => rules)
  const rules = [...layers, ...agentRulesets(workspace)].flat()
  const isTool = customTools(workspace)
  const seen = new Set<string>()
  return rules.flatMap((rule) => {
    const { permission } = rule
    if (seen.has(permission) || /[*?]/.test(permission) || isTool(permission)) return []
    seen.add(permission)
    return describe(rule)
  })
}

/** Tells of a name whether it may be that of a custom tool, trusted or not, or of an MCP server's. Nothing is started. */
export function customTools(workspace: Workspace): (name: string) => boolean {
  const tools = findToolFiles(configDirectories(workspace).map(({ path }) => path)).map(toolName)
  const servers = Object.keys(workspace.config.config.mcp ?? {})
  return (name) =>
    tools.some((tool) => name === tool || name.startsWith(`${tool}_`)) ||
    servers.some((server) => name.startsWith(`${server}_`))
}

/** What was probably meant by a name that is neither a permission of Tackle's nor one of a custom tool or an MCP server. */
export function nearPermission(permission: string, workspace: Workspace): string | undefined {
  const isKnown = knownPermissions.includes(permissionType(permission)) || customTools(workspace)(permission)
  return isKnown ? undefined : nearest(permission)
}

function describe(rule: Rule): string[] {
  const { permission } = rule
  const origin = ruleOrigin(rule)
  const prefix = origin === "" ? "" : `${origin}: `
  if (knownPermissions.includes(permissionType(permission))) return []
  const near = nearest(permission)
  if (near === undefined) return []
  return [
    `${prefix}the rule for "${permission}" holds for a tool of that name alone. Did you mean "${near}"?`,
  ]
}

/** One letter in four may be wrong, or two may have changed places. */
function nearest(name: string): string | undefined {
  const letters = (text: string) => [...text.toLowerCase()].sort().join("")
  const swapped = nearNames(name, knownPermissions, 2).find((known) => letters(known) === letters(name))
  return nearNames(name, knownPermissions, Math.ceil(name.length / 4))[0] ?? swapped
}

function toolName(path: string): string {
  return basename(path, extname(path))
}
