import { join } from "node:path"
import type { Rule } from "../schema/permission.ts"
import { nearNames } from "../util/similarity.ts"

/** Tackle's permissions, keyed by Claude Code's tool names. */
const toolNames: Readonly<Record<string, string>> = {
  Read: "read",
  Write: "edit",
  Edit: "edit",
  MultiEdit: "edit",
  Bash: "bash",
  BashOutput: "job",
  KillShell: "job",
  KillBash: "job",
  TaskOutput: "job",
  TaskStop: "job",
  Grep: "grep",
  Glob: "glob",
  LS: "list",
  Task: "task",
  Agent: "task",
  Skill: "skill",
  TodoWrite: "todo",
  WebFetch: "webfetch",
  WebSearch: "websearch",
  LSP: "lsp",
  AskUserQuestion: "question",
  ExitPlanMode: "plan_exit",
}

/**
 * Returns Tackle's permission for a Claude Code tool, or undefined if Tackle has no such tool. `mcp__server__tool`
 * becomes `server_tool`, and `mcp__server` becomes `server_*`.
 */
export function toolOf(name: string): string | undefined {
  if (Object.hasOwn(toolNames, name)) return toolNames[name]
  const [, server, tool = "*"] = /^mcp__(.+?)(?:__(.+))?$/.exec(name) ?? []
  return server === undefined ? undefined : `${server}_${tool}`
}

/**
 * Translates a rule such as `Bash(npm run test:*)` to the permissions and patterns that it covers, or more. `base` is
 * the directory of relative paths. The other results are `no such tool`, if Tackle has no tool that the rule could
 * concern, and `not understood`.
 */
export function translateRule(
  text: string,
  base: string,
): Pick<Rule, "permission" | "pattern">[] | "no such tool" | "not understood" {
  const [, name, detail = ""] = /^\s*([\w*.-]+)\s*(?:\((.*)\))?\s*$/s.exec(text) ?? []
  if (name === undefined) return "not understood"
  if (name === "*") return detail.trim() === "" ? [{ permission: "*", pattern: "*" }] : "not understood"
  const isNotebook = name === "NotebookEdit"
  const tool = isNotebook ? "edit" : toolOf(name)
  if (tool === undefined) {
    const isTypo = nearNames(name, Object.keys(toolNames), name.length > 3 ? 2 : 1).length > 0
    return isTypo || /[*.]/.test(name) ? "not understood" : "no such tool"
  }
  const within = detail.trim()
  if (within === "" || within === "*")
    return [{ permission: permissionName(tool), pattern: isNotebook ? "*.ipynb" : "*" }]
  // Claude Code applies rules for reading to all tools that read files.
  const permission = searchTools.has(tool) ? "read" : permissionName(tool)
  return patternsOf(permission, within, base)?.map((pattern) => ({ permission, pattern })) ?? "not understood"
}

const searchTools: ReadonlySet<string> = new Set(["grep", "glob", "list"])

function permissionName(tool: string): string {
  return tool.replaceAll(/[^\w*-]/g, "_")
}

/** Matches a rule about a parameter of a tool, such as `Agent(model:opus)`. */
const parameter =
  /^(?:run_in_background|timeout|description|prompt|model|isolation|mode|dangerouslyDisableSandbox):/

function patternsOf(permission: string, detail: string, base: string): string[] | undefined {
  if (parameter.test(detail)) return undefined
  switch (permission) {
    case "bash":
      return commandPatterns(detail)
    case "read":
    case "edit":
      return pathPatterns(detail, base)
    case "webfetch": {
      const [, domain] = /^domain:(.+)$/.exec(detail) ?? []
      return domain === undefined ? undefined : domainPatterns(domain)
    }
    case "task":
      return [detail]
    case "skill":
      return [detail.replace(/[: ]\*$/, "")]
    default:
      return undefined
  }
}

/** Returns patterns that match all URLs of a domain. */
export function domainPatterns(domain: string): string[] {
  return ["", "/*", ":*"].map((end) => `*://${domain}${end}`)
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
export function pathPatterns(detail: string, base: string): string[] | undefined {
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
