import { join } from "node:path"
import type { Action, Rule } from "../schema/permission.ts"
import { errorMessage } from "../util/errors.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { displayPath, isInside } from "../util/paths.ts"
import { counted } from "../util/words.ts"
import { toolOf } from "./claude.ts"
import { type Location, projectLevels } from "./location.ts"
import { readSmallFile } from "./small-file.ts"

/** The parts of Claude Code's settings files that Tackle uses, and a summary of the parts that it does not use. */
export interface ClaudeSettings {
  /**
   * The rules from `permissions.ask` and `permissions.deny`. These rules can only make verdicts stricter. Together,
   * they apply to all calls to which the original rules apply in Claude Code.
   */
  rules: Rule[]
  /** One line for each file that contains settings that Tackle does not use, or that cannot be read. */
  unused: string[]
}

/** Reads the settings files of Claude Code: first the user's files, then the files in the project's directories. */
export function readClaudeSettings(location: Location): ClaudeSettings {
  const found: ClaudeSettings = { rules: [], unused: [] }
  for (const base of new Set([location.home, ...projectLevels(location)])) {
    for (const name of ["settings.json", "settings.local.json"]) {
      const { rules, unused } = readSettings(join(base, ".claude", name), base, location)
      found.rules.push(...rules)
      found.unused.push(...unused)
    }
  }
  return found
}

function readSettings(path: string, base: string, { home, worktree }: Location): ClaudeSettings {
  const shown = isInside(path, worktree) ? displayPath(path, worktree) : path.replace(`${home}/`, "~/")
  const unusable = (why: string) => ({ rules: [], unused: [`${shown}: ${why}`] })
  try {
    const file = readSmallFile(path)
    if (file === undefined) return { rules: [], unused: [] }
    const parsed = parseJson(file.text)
    if (!parsed.ok) return unusable(`not valid JSON (${parsed.error})`)
    if (!isRecord(parsed.value)) return { rules: [], unused: [] }
    const { permissions, ...others } = parsed.value
    const translated = translatePermissions(permissions, { path, base })
    const keys = Object.entries(others).filter(([key]) => key !== "$schema")
    const unused = [...translated.unused, ...keys.map(([key, value]) => describe(key, value))]
    return { rules: translated.rules, unused: unused.length > 0 ? [`${shown}: ${unused.join(", ")}`] : [] }
  } catch (error) {
    // The file is not part of Tackle's config, so the error is not fatal.
    return unusable(`cannot be read (${errorMessage(error)})`)
  }
}

/** A settings file, and the base directory for its relative paths. */
interface SettingsFile {
  path: string
  base: string
}

function translatePermissions(permissions: unknown, file: SettingsFile): ClaudeSettings {
  if (!isRecord(permissions)) return { rules: [], unused: permissions === undefined ? [] : ["permissions"] }
  const rules: Rule[] = []
  const unused: string[] = []
  for (const [key, value] of Object.entries(permissions)) {
    // The last matching rule decides, so `deny` rules must come after `ask` rules, regardless of the order in the file.
    if (key === "deny" || key === "ask") continue
    unused.push(
      Array.isArray(value)
        ? `${key} with ${counted(value.length, "entry", "entries")}; write rules under \`permission\` instead`
        : key,
    )
  }
  for (const action of ["ask", "deny"] as const) {
    const given = permissions[action]
    if (given !== undefined && !Array.isArray(given)) unused.push(action)
    for (const entry of Array.isArray(given) ? given : []) {
      const translated = typeof entry === "string" ? translateRule(entry, action, file) : undefined
      if (translated) rules.push(...translated)
      else unused.push(`${action} ${JSON.stringify(entry)}`)
    }
  }
  return { rules, unused: unused.length > 0 ? [`permissions (${unused.join(", ")})`] : [] }
}

/** Translates a rule such as `Bash(npm run test:*)`. Returns undefined for a rule that Tackle cannot express. */
function translateRule(text: string, action: Action, { path, base }: SettingsFile): Rule[] | undefined {
  const [, name = "", detail] = /^\s*([\w*-]+)\s*(?:\((.*)\))?\s*$/s.exec(text) ?? []
  const tool = toolOf(name)
  const patterns = tool === undefined ? undefined : patternsOf(tool, detail?.trim() ?? "", base)
  if (tool === undefined || patterns === undefined) return undefined
  const permission = tool.replaceAll(/[^\w*-]/g, "_")
  return patterns.map((pattern) => ({ permission, pattern, action, source: { file: path } }))
}

function patternsOf(permission: string, detail: string, base: string): string[] | undefined {
  if (detail === "" || detail === "*") return ["*"]
  if (permission === "bash") return commandPatterns(detail)
  if (permission === "read" || permission === "edit") return pathPatterns(detail, base)
  if (permission === "webfetch") {
    const [, domain] = /^domain:(.+)$/.exec(detail) ?? []
    return domain === undefined ? undefined : ["", "/*", ":*"].map((end) => `*://${domain}${end}`)
  }
  return permission === "task" || permission === "skill" ? [detail] : undefined
}

/**
 * Translates a command pattern. `npm run test:*` matches all commands with this prefix. `npm run *` also matches `npm
 * run`.
 */
function commandPatterns(detail: string): string[] {
  if (detail.endsWith(":*")) return [`${detail.slice(0, -2)}*`]
  return detail.endsWith(" *") ? [detail, detail.slice(0, -2)] : [detail]
}

/**
 * Translates a pattern in gitignore syntax. `//` starts an absolute path, `~/` a path in the home directory, and `/` a
 * path in the base directory. A name without `/` matches in every directory. A wildcard also matches `/`, so the result
 * can match more paths.
 */
function pathPatterns(detail: string, base: string): string[] | undefined {
  if (detail.startsWith("!")) return undefined
  const isAnywhere = !detail.replace(/\/+$/, "").includes("/")
  const path = detail
    .replaceAll("/**/", "/*")
    .replaceAll(/\*\*\/?/g, "*")
    .replaceAll(/\[[^\]/]*\]/g, "?")
  const anchored = isAnywhere
    ? `*/${path}`
    : path.startsWith("//")
      ? path.slice(1)
      : path.startsWith("~/") || path.startsWith("*")
        ? path
        : join(base, path)
  const whole = anchored.replace(/\/+$/, "")
  return [whole, `${whole}/*`]
}

function describe(key: string, value: unknown): string {
  return isRecord(value) ? `${key} (${Object.keys(value).join(", ")})` : key
}
