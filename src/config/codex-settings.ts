import { isAbsolute, join } from "node:path"
import type { Action, Rule } from "../schema/permission.ts"
import { directoryEntries, isDirectory } from "../util/file-system.ts"
import { isInside } from "../util/paths.ts"
import { domainPatterns, pathPatterns } from "./claude-rules.ts"
import { parseCodexRules, type RuleCall, type RuleValue } from "./codex-rules.ts"
import type { Position, Problem } from "./errors.ts"
import {
  addRules,
  type ForeignSettings,
  readForeignFile,
  readProblems,
  shownPath,
} from "./foreign-settings.ts"
import { type Location, projectLevels } from "./location.ts"
import { type ConfigEntry, type ConfigNode, entryOf, nodeAt, type ObjectNode } from "./node.ts"
import { isRuleLike } from "./rules.ts"
import { readSmallFile } from "./small-file.ts"
import { parseToml } from "./toml.ts"

/**
 * Reads Codex's settings: first the user's, then those in the project's directories. Tackle applies the decisions
 * `prompt` and `forbidden` in `rules/*.rules`, read-only modes, the denied paths and domains of the selected permission
 * profile, and a disabled web search. A rule or a limit that Tackle does not understand is a problem.
 */
export async function readCodexSettings(location: Location, found: ForeignSettings): Promise<void> {
  const { CODEX_HOME: configured } = location.environment
  const own = configured && isAbsolute(configured) ? configured : join(location.home, ".codex")
  const directories = [own, ...projectLevels(location).map((level) => join(level, ".codex"))]
  for (const directory of new Set(directories)) {
    if (!isDirectory(directory)) continue
    await readConfigFile(directory, location, found)
    readRuleFiles(join(directory, "rules"), location, found)
    for (const name of ["hooks.json", "agents", "skills", "prompts"])
      if (directoryEntries(directory).some((entry) => entry.name === name))
        found.unused.push(`${shownPath(join(directory, name), location)}: all`)
  }
}

/** The settings of one `config.toml`. */
interface Reading {
  tree: ObjectNode
  /** Base directory of relative paths. */
  base: string
  found: ForeignSettings
  /** The action for a change that Codex's sandbox prevents: Codex asks before it leaves the sandbox, or never does. */
  restricted: Action
}

async function readConfigFile(directory: string, location: Location, found: ForeignSettings): Promise<void> {
  const path = join(directory, "config.toml")
  const level = join(directory, "..")
  const base = isInside(level, location.worktree) ? level : location.worktree
  await readForeignFile({ path, location, found, parse: parseToml }, (entry, tree) => {
    const restricted = textAt(tree, "approval_policy") === "never" ? "deny" : "ask"
    return readSetting(entry, { tree, base, found, restricted })
  })
}

/** Settings that mention permissions, but do not limit tools beyond Tackle's defaults. */
const harmless: ReadonlySet<string> = new Set([
  "approval_policy",
  "approvals_reviewer",
  "sandbox_workspace_write",
  "shell_environment_policy",
])

/** Reads one top-level setting. Returns how to name it in a list of unused settings, or nothing if it is used. */
function readSetting(entry: ConfigEntry, reading: Reading): string[] {
  const { key, value, position } = entry
  const { tree, found } = reading
  const text = value.kind === "scalar" ? value.value : undefined
  switch (key) {
    case "sandbox_mode":
      if (text === "read-only") forbidChanges(["*"], position, reading)
      return []
    case "web_search":
      if (text === "disabled")
        addRules(found, [{ permission: "websearch", pattern: "*" }], { action: "deny", position })
      return []
    case "default_permissions":
      // Codex ignores permission profiles if the older setting is present.
      if (!entryOf(tree, "sandbox_mode")) readProfile(value, reading)
      return []
    case "permissions":
      return []
    case "hooks":
      if (entryOf(value, "PreToolUse") || entryOf(value, "PermissionRequest"))
        found.warnings.push({
          position,
          text: `Tackle does not run Codex's hooks, so they refuse nothing. Write what they refuse as rules under "permission".`,
        })
      return [key]
  }
  if (isRuleLike(key) && !harmless.has(key)) found.problems.push(notUnderstood(key, position))
  return [key]
}

function notUnderstood(path: string, position: Position): Problem {
  return {
    position,
    text: `${path}: Tackle does not understand this setting, which may limit what an agent can do. Write rules under "permission" in a Tackle config, or remove the setting.`,
  }
}

function forbidChanges(
  patterns: readonly string[],
  position: Position,
  { found, restricted }: Reading,
): void {
  addRules(
    found,
    patterns.map((pattern) => ({ permission: "edit", pattern })),
    { action: restricted, position },
  )
}

/** Reads the selected permission profile and the profiles that it extends. */
function readProfile(selected: ConfigNode, reading: Reading): void {
  const { tree, found } = reading
  const seen = new Set<string>()
  for (let node: ConfigNode | undefined = selected; node; ) {
    const name = node.kind === "scalar" ? String(node.value) : ""
    if (name === ":read-only") forbidChanges(["*"], node.position, reading)
    if (name.startsWith(":") || seen.has(name)) return
    seen.add(name)
    const profile = nodeAt(tree, ["permissions", name])
    if (profile?.kind !== "object") {
      found.problems.push({
        position: node.position,
        text: `default_permissions: the permission profile ${JSON.stringify(name)} does not exist in this file.`,
      })
      return
    }
    for (const { key, value, position } of profile.entries) {
      const path = `permissions.${name}.${key}`
      if (key === "filesystem" && value.kind === "object") readPaths(value, { ...reading, path })
      else if (key === "network" && value.kind === "object") readNetwork(value, { ...reading, path })
      else if (!["extends", "description", "workspace_roots"].includes(key))
        found.problems.push(notUnderstood(path, position))
    }
    node = entryOf(profile, "extends")?.value
  }
}

function readPaths(paths: ObjectNode, reading: Reading & { path: string }): void {
  for (const { key, value, position } of paths.entries) {
    const path = `${reading.path}.${key}`
    const isRoots = /^:(?:workspace|project)_roots$/.test(key)
    if (value.kind === "object") {
      const base = isRoots ? reading.base : key.startsWith(":") ? undefined : absolute(key, reading.base)
      if (base === undefined) reading.found.problems.push(notUnderstood(path, position))
      else readPaths(value, { ...reading, base, path })
      continue
    }
    const access = value.kind === "scalar" ? value.value : undefined
    if (typeof access === "number" || access === "write") continue
    const patterns = isRoots ? ["*"] : key.startsWith(":") ? [] : patternsOf(key, reading.base)
    const isDenied = access === "deny" || access === "none"
    if ((!isDenied && access !== "read") || !patterns || (isDenied && patterns.length === 0))
      reading.found.problems.push(notUnderstood(path, position))
    else if (isDenied)
      addRules(
        reading.found,
        ["read", "edit"].flatMap((permission) => patterns.map((pattern) => ({ permission, pattern }))),
        { action: "deny", position },
      )
    else forbidChanges(patterns, position, reading)
  }
}

function absolute(path: string, base: string): string {
  return isAbsolute(path) || path.startsWith("~/") ? path : join(base, path)
}

function patternsOf(path: string, base: string): string[] | undefined {
  const whole = absolute(path, base)
  return pathPatterns(whole.startsWith("~/") ? whole : `/${whole}`, base)
}

function readNetwork(network: ObjectNode, { found, path }: Reading & { path: string }): void {
  for (const { key, value, position } of network.entries) {
    if (key === "enabled" && value.kind === "scalar" && value.value === false)
      addRules(found, [{ permission: "network", pattern: "*" }], { action: "deny", position })
    else if (key === "domains" && value.kind === "object") {
      for (const domain of value.entries) {
        const access = domain.value.kind === "scalar" ? domain.value.value : undefined
        if (access === "deny") denyDomain(domain.key, domain.position, found)
        else if (access !== "allow")
          found.problems.push(notUnderstood(`${path}.domains.${domain.key}`, domain.position))
      }
    } else if (isRuleLike(key) && !key.startsWith("allow"))
      found.problems.push(notUnderstood(`${path}.${key}`, position))
  }
}

function denyDomain(domain: string, position: Position, found: ForeignSettings): void {
  const rules = [
    { permission: "network", pattern: domain },
    ...domainPatterns(domain).map((pattern) => ({ permission: "webfetch", pattern })),
  ]
  addRules(found, rules, { action: "deny", position })
}

function textAt(tree: ObjectNode, key: string): unknown {
  const value = entryOf(tree, key)?.value
  return value?.kind === "scalar" ? value.value : undefined
}

function readRuleFiles(directory: string, location: Location, found: ForeignSettings): void {
  if (!isDirectory(directory)) return
  for (const { name } of directoryEntries(directory)) {
    if (!name.endsWith(".rules")) continue
    const path = join(directory, name)
    try {
      const calls = parseCodexRules(readSmallFile(path)?.text ?? "", path)
      const allowed = calls.filter((call) => !readRule(call, found)).length
      if (allowed > 0) found.unused.push(`${shownPath(path, location)}: rules that allow (${allowed})`)
    } catch (error) {
      found.problems.push(...readProblems(path, error))
    }
  }
}

const decisions: ReadonlyMap<unknown, Action> = new Map<unknown, Action>([
  [undefined, "allow"],
  ["allow", "allow"],
  ["prompt", "ask"],
  ["forbidden", "deny"],
  ["deny", "deny"],
])

/** Adds the rules of one call. Returns false for a rule that allows. */
function readRule({ name, args, position }: RuleCall, found: ForeignSettings): boolean {
  const action = decisions.get(args.get("decision"))
  if (name === "host_executable") return false
  if (action === "allow" && (name === "prefix_rule" || name === "network_rule")) return false
  const host = args.get("host")
  const prefixes = prefixesOf(args.get("pattern"))
  if (name === "network_rule" && typeof host === "string" && action === "deny")
    denyDomain(host, position, found)
  else if (name === "prefix_rule" && action && prefixes) addRules(found, prefixes, { action, position })
  else if (name !== "network_rule" || action !== "ask")
    found.problems.push({
      position,
      text: `Tackle does not understand this rule. Expected prefix_rule(pattern = ["…"], decision = "forbidden") or network_rule(host = "…", decision = "deny").`,
    })
  return true
}

/** Maximum number of prefixes that one rule with alternatives can have. */
const maxPrefixes = 200

/** Returns a pattern for each prefix, or undefined for an invalid value. White space in a word matches any text. */
function prefixesOf(pattern: RuleValue | undefined): Pick<Rule, "permission" | "pattern">[] | undefined {
  if (!Array.isArray(pattern) || pattern.length === 0) return undefined
  let prefixes = [""]
  for (const part of pattern) {
    const words: unknown[] = Array.isArray(part) ? part : [part]
    if (words.length === 0 || words.some((word) => typeof word !== "string" || word === "")) return undefined
    prefixes = prefixes.flatMap((prefix) =>
      words.map((word) => `${prefix}${prefix === "" ? "" : " "}${String(word).replaceAll(/\s+/g, "*")}`),
    )
    if (prefixes.length > maxPrefixes) return undefined
  }
  return prefixes.map((prefix) => ({ permission: "bash", pattern: `${prefix} *` }))
}
