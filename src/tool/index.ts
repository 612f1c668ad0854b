/** `tackle/tool`: what the file of a custom tool imports. Needs zod and nothing else. */
export type { AskRequest, MetadataUpdate, ToolContext } from "./context.ts"
export type { ToolResult } from "./result.ts"
export * as Tool from "./tool.ts"
