import type { Policy } from "../permission/policy.ts"
import type { ModelRef } from "../schema/message.ts"
import type { Info } from "../tool/tool.ts"

/** A tool with its origin, before it is prepared for an agent. */
export interface RegisteredTool {
  tool: Info
  /** The name that its author gave it, if it is offered under another name. */
  ownName?: string | undefined
  source: ToolSource
  /** Returns why the tool is unavailable whatever the rules say: a missing backend, a flag that is off. */
  unavailableReason?: (scope: ToolScope) => string | undefined
}

/** The origin of a tool: the `path` of a custom file, a `server` of the config, or the name of a plugin. */
export type ToolSource =
  | { kind: "builtin" }
  | { kind: "library" }
  | { kind: "file"; path: string }
  | { kind: "mcp"; server: string }
  | { kind: "plugin"; plugin: string }

/** The agent and model that tools are listed for. */
export interface ToolScope {
  /** Absent for calls by hand: nothing is then hidden because of the model. */
  model?: ModelRef
  agent: string
  policy: Policy
  /** Tools that cannot work here whatever the rules say, with the reason: no depth left, no user to ask. */
  unavailable?: Readonly<Record<string, string>>
}

/** Describes a source for lists and messages. */
export function describeSource(source: ToolSource): string {
  if (source.kind === "file") return source.path
  if (source.kind === "plugin") return `plugin ${source.plugin}`
  return source.kind === "mcp" ? `mcp ${source.server}` : source.kind
}

/** Returns the permission that a tool asks for. Most tools have their own. */
export function permissionOf(id: string): string {
  return permissions[id] ?? id
}

const permissions: Readonly<Record<string, string>> = Object.assign(Object.create(null), {
  write: "edit",
  apply_patch: "edit",
  todowrite: "todo",
  todoread: "todo",
})

/** The reason why a tool was left out. Shown to the user. Other tools are not affected. */
export interface RegistryProblem {
  /** The file or source of the tool. */
  file: string
  message: string
}

/** Adds a problem of the tool, once. */
export function report(problems: RegistryProblem[], entry: RegisteredTool, message: string): void {
  const file = describeSource(entry.source)
  if (!problems.some((known) => known.file === file && known.message === message))
    problems.push({ file, message })
}
