import type { Policy } from "../permission/policy.ts"
import type { ModelRef } from "../schema/message.ts"
import type { Info } from "../tool/tool.ts"

/** A tool with its origin, before it is prepared for anybody. */
export interface RegisteredTool {
  tool: Info
  /** The name that its author gave it, where it is offered by another. */
  ownName?: string | undefined
  source: ToolSource
  /** Why it is not offered here whatever the rules say: a missing back end, a flag that is off. */
  unavailable?: (scope: ToolScope) => string | undefined
}

/** Where a tool comes from: `path` of a custom file, `server` of the config, name of a plugin. */
export type ToolSource =
  | { kind: "builtin" }
  | { kind: "library" }
  | { kind: "file"; path: string }
  | { kind: "mcp"; server: string }
  | { kind: "plugin"; plugin: string }

/** Whom tools are listed for. */
export interface ToolScope {
  /** Absent where a person calls by hand: nothing is then kept back for the sake of a model. */
  model?: ModelRef
  agent: string
  policy: Policy
  /** Tools that cannot work here whatever the rules say, with the reason: no depth left, nobody to ask. */
  lacking?: Readonly<Record<string, string>>
}

/** A source in words, for lists and messages. */
export function describeSource(source: ToolSource): string {
  if (source.kind === "file") return source.path
  if (source.kind === "plugin") return `plugin ${source.plugin}`
  return source.kind === "mcp" ? `mcp ${source.server}` : source.kind
}
