/**
 * `tackle/plugin`: what the file of a plugin imports. `@opencode-ai/plugin` resolves to this module too, for plugins and
 * for tool files.
 */
import * as z from "zod"
import type { ToolContext } from "../tool/context.ts"
import type { ToolResult } from "../tool/tool.ts"
import type { Hooks } from "./hooks.ts"
import type { PluginInput } from "./input.ts"

export * as Tool from "../tool/tool.ts"
export type { Hooks } from "./hooks.ts"
export type { PluginInput } from "./input.ts"

/** What a plugin file exports. */
export type Plugin = (input: PluginInput, options?: Readonly<Record<string, unknown>>) => Promise<Hooks>

/** A tool of OpenCode's shape: a description, fields of zod, and a function that gives a text or a result. */
export interface PluginTool<Args extends z.ZodRawShape> {
  description: string
  args: Args
  execute(args: z.infer<z.ZodObject<Args>>, context: ToolContext): Promise<string | ToolResult>
}

/** Returns what it is given; only types come of it. `tool.schema` is zod. */
export const tool = Object.assign(
  <Args extends z.ZodRawShape>(definition: PluginTool<Args>): PluginTool<Args> => definition,
  { schema: z },
)
