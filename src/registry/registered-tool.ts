import type { Policy } from "../permission/policy.ts"
import type { ModelRef } from "../schema/message.ts"
import type { Info, InitAgent } from "../tool/tool.ts"

/** A tool with its origin, before it is prepared for an agent. */
export interface RegisteredTool {
  tool: Info
  source: ToolSource
  /** Returns why the tool is unavailable regardless of the rules, such as a missing backend or a disabled flag. */
  unavailableReason?: (scope: ToolScope) => string | undefined
}

/**
 * The origin of a tool. `path` is a custom tool file, `server` is the id of an MCP server in the config, and `plugin`
 * is the name of a plugin.
 */
export type ToolSource =
  | { kind: "builtin" }
  | { kind: "library" }
  | { kind: "file"; path: string }
  | { kind: "mcp"; server: string }
  | { kind: "plugin"; plugin: string }

/** The agent and model that tools are listed for. */
export interface ToolScope {
  /** The model. If undefined, as for standalone calls, no tool is hidden because of the model. */
  model?: ModelRef
  agent: string
  mode: InitAgent["mode"]
  policy: Policy
  /**
   * Reasons why tools cannot work here regardless of the rules, keyed by tool id, for example that no user can be
   * asked.
   */
  unavailable?: Readonly<Record<string, string>>
}

/** Returns the name of a source for lists and messages. */
export function describeSource(source: ToolSource): string {
  if (source.kind === "file") return source.path
  if (source.kind === "plugin") return `plugin ${source.plugin}`
  return source.kind === "mcp" ? `mcp ${source.server}` : source.kind
}

/** Returns the permission that a tool requests. For most tools, it is the tool's id. */
export function permissionOf(id: string): string {
  return permissions[id] ?? id
}

const permissions: Readonly<Record<string, string>> = Object.assign(Object.create(null), {
  write: "edit",
  apply_patch: "edit",
  todowrite: "todo",
  todoread: "todo",
})

/** The reason why a tool was omitted, shown to the user. Other tools are not affected. */
export interface RegistryProblem {
  /** The file or source of the tool. */
  file: string
  message: string
}

/** Adds a problem with a tool to the list, unless the list already contains it. */
export function report(problems: RegistryProblem[], entry: RegisteredTool, message: string): void {
  const file = describeSource(entry.source)
  if (!problems.some((known) => known.file === file && known.message === message))
    problems.push({ file, message })
}
