/** `tackle/tool`: the import of custom tools. Depends on nothing but zod. */
export type { AskRequest, MetadataUpdate, ToolContext } from "./context.ts"
export type { ToolResult } from "./tool.ts"
export * as Tool from "./tool.ts"
