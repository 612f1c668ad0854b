/** The `tackle/tool` module, which custom tools import. Depends only on zod. */
import "../util/require-node.ts"

export type { AskRequest, MetadataUpdate, ToolContext } from "./context.ts"
export type { ToolResult } from "./tool.ts"
export * as Tool from "./tool.ts"
