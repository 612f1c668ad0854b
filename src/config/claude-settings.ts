import { join } from "node:path"
import type { Rule } from "../schema/permission.ts"
import { counted } from "../util/words.ts"
import { domainPatterns, pathPatterns, translateRule } from "./claude-rules.ts"
import type { Problem } from "./errors.ts"
import { addRules, type ForeignSettings, readForeignFile } from "./foreign-settings.ts"
import { parseJsonc } from "./jsonc.ts"
import { type Location, projectLevels } from "./location.ts"
import { type ConfigEntry, type ConfigNode, entryOf } from "./node.ts"
import { isRuleLike } from "./rules.ts"

/**
 * Reads Claude Code's settings files: first the user's files, then the files in the project's directories. Tackle
 * applies `permissions.ask`, `permissions.deny`, the denied paths and domains in `sandbox`, and the lists of disabled
 * MCP servers. A rule or a limit that Tackle does not understand is a problem.
 */
export async function readClaudeSettings(location: Location, found: ForeignSettings): Promise<void> {
  for (const base of new Set([location.home, ...projectLevels(location)]))
    for (const name of ["settings.json", "settings.local.json"]) {
      const path = join(base, ".claude", name)
      await readForeignFile({ path, location, found, parse: parseJsonc }, (entry) =>
        readSetting(entry, { base, found }),
      )
    }
}

/** A settings file's base directory, and the settings that were found. */
interface Reading {
  base: string
  found: ForeignSettings
}

/** Settings that mention permissions, but only loosen them or concern Claude Code's own modes. */
const harmless: ReadonlySet<string> = new Set([
  "skipDangerousModePermissionPrompt",
  "skipAutoPermissionPrompt",
  "allowManagedPermissionRulesOnly",
  "allowManagedHooksOnly",
  "allowManagedMcpServersOnly",
  "allowedHttpHookUrls",
  "httpHookAllowedEnvVars",
  "defaultMode",
  "disableBypassPermissionsMode",
  "disableAutoMode",
])

/** Reads one top-level setting. Returns how to name it in a list of unused settings, or nothing if it is used. */
function readSetting(entry: ConfigEntry, reading: Reading): string[] {
  const { key, value } = entry
  switch (key) {
    case "$schema":
      return []
    case "permissions":
      if (value.kind !== "object") reading.found.problems.push(notUnderstood(value, key, undefined))
      return section(entry, (field) => readPermissions(field, reading))
    case "sandbox":
      return section(entry, (field) => readSandbox(field, reading))
    case "disabledMcpjsonServers":
      reading.found.disabledServers.push(...texts(entry, reading.found.problems))
      return []
    case "hooks":
      warnAboutGuards(value, reading.found)
      return [described(entry)]
    default:
      return unused(entry, key, reading)
  }
}

/** Reads the fields of an object. Returns the unused fields in parentheses after the key. */
function section(entry: ConfigEntry, read: (field: ConfigEntry) => string[]): string[] {
  if (entry.value.kind !== "object") return [entry.key]
  const fields = entry.value.entries.flatMap(read)
  return fields.length > 0 ? [`${entry.key} (${fields.join(", ")})`] : []
}

function readPermissions(entry: ConfigEntry, { base, found }: Reading): string[] {
  const { key, value } = entry
  if (key === "ask" || key === "deny") {
    const unusedRules: string[] = []
    const items = value.kind === "array" ? value.items : [value]
    for (const item of items) {
      const text = item.kind === "scalar" && typeof item.value === "string" ? item.value : undefined
      const rules =
        value.kind !== "array" || text === undefined ? "not understood" : translateRule(text, base)
      if (rules === "not understood") found.problems.push(notUnderstood(item, `permissions.${key}`, text))
      else if (rules === "no such tool") unusedRules.push(`${key} ${JSON.stringify(text)}`)
      else addRules(found, rules, { action: key, position: item.position })
    }
    return unusedRules
  }
  if (key === "allow" && value.kind === "array") {
    const entries = counted(value.items.length, "entry", "entries")
    return [`allow with ${entries}; write rules under \`permission\` instead`]
  }
  if (key === "additionalDirectories" || key === "allow") return [key]
  return unused(entry, `permissions.${key}`, { base, found }, { strict: true })
}

function readSandbox(entry: ConfigEntry, { base, found }: Reading): string[] {
  if (entry.key !== "filesystem" && entry.key !== "network") return [entry.key]
  return section(entry, (field) => {
    const { position } = field
    const add = (rules: Pick<Rule, "permission" | "pattern">[]) =>
      addRules(found, rules, { action: "deny", position })
    switch (field.key) {
      case "denyRead":
      case "denyWrite": {
        const permission = field.key === "denyRead" ? "read" : "edit"
        for (const text of texts(field, found.problems)) {
          // In this section, a path that starts with one slash is absolute.
          const path = text.startsWith("/") && !text.startsWith("//") ? `/${text}` : text
          const patterns = pathPatterns(path.includes("/") ? path : `./${path}`, base)
          if (patterns) add(patterns.map((pattern) => ({ permission, pattern })))
          else found.problems.push(notUnderstood(field.value, `sandbox.filesystem.${field.key}`, text))
        }
        return []
      }
      case "deniedDomains":
        for (const domain of texts(field, found.problems))
          add([
            { permission: "network", pattern: domain },
            ...domainPatterns(domain).map((pattern) => ({ permission: "webfetch", pattern })),
          ])
        return []
      default:
        return unused(field, `sandbox.${entry.key}.${field.key}`, { base, found })
    }
  })
}

/** Returns the strings in a list. Any other value is a problem. */
function texts({ key, value, position }: ConfigEntry, problems: Problem[]): string[] {
  const items = value.kind === "array" ? value.items : []
  const found = items.flatMap((item) =>
    item.kind === "scalar" && typeof item.value === "string" ? [item.value] : [],
  )
  if (value.kind !== "array" || found.length < items.length)
    problems.push({ position, text: `${key}: expected a list of strings.` })
  return found
}

/** Names of settings that loosen a sandbox or a list of servers. */
const loosening = /^(?:allow|enable|excluded|auto)/

/** Returns the description of a setting that Tackle does not use. A setting that may limit an agent is a problem. */
function unused(entry: ConfigEntry, path: string, { found }: Reading, { strict = false } = {}): string[] {
  const { key, position } = entry
  if (harmless.has(key)) return [described(entry)]
  if (strict || (isRuleLike(key) && !loosening.test(key))) {
    found.problems.push({
      position,
      text: `${path}: Tackle does not understand this setting, which may limit what an agent can do. Write rules under "permission" in a Tackle config, or remove the setting.`,
    })
    return []
  }
  return [described(entry)]
}

function notUnderstood({ position }: ConfigNode, path: string, text: string | undefined): Problem {
  const what =
    text === undefined
      ? "expected lists of rules"
      : `Tackle does not understand the rule ${JSON.stringify(text)}`
  return {
    position,
    text: `${path}: ${what}. Correct it, or write the rule under "permission" in a Tackle config.`,
  }
}

/** Hooks that can refuse a call. */
const guards = ["PreToolUse", "PermissionRequest"]

function warnAboutGuards(hooks: ConfigNode, found: ForeignSettings): void {
  for (const name of guards) {
    const hook = entryOf(hooks, name)
    if (hook)
      found.warnings.push({
        position: hook.position,
        text: `Tackle does not run the hooks in ${name}, so they refuse nothing. Write what they refuse as rules under "permission".`,
      })
  }
}

function described({ key, value }: ConfigEntry): string {
  return value.kind === "object" ? `${key} (${value.entries.map((entry) => entry.key).join(", ")})` : key
}
