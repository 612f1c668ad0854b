/**
 * The module `tackle/plugin`, which plugin files import. In plugins and tool files, `@opencode-ai/plugin` also resolves
 * to this module.
 */
import "../util/require-node.ts"
import * as z from "zod"
import type { ToolContext } from "../tool/context.ts"
import type { ToolResult } from "../tool/tool.ts"
import type { Hooks } from "./hooks.ts"
import type { PluginInput } from "./input.ts"

export * as Tool from "../tool/tool.ts"
export type { Hooks } from "./hooks.ts"
export type { PluginInput } from "./input.ts"

/** The function that a plugin file exports. */
export type Plugin = (input: PluginInput, options?: Readonly<Record<string, unknown>>) => Promise<Hooks>

/** A tool in OpenCode's format: a description, Zod fields, and a function that returns text or a result. */
export interface PluginTool<Args extends z.ZodRawShape> {
  description: string
  args: Args
  execute(args: z.infer<z.ZodObject<Args>>, context: ToolContext): Promise<string | ToolResult>
}

/** Returns its argument, for type inference. `tool.schema` is Zod. */
export const tool = Object.assign(
  <Args extends z.ZodRawShape>(definition: PluginTool<Args>): PluginTool<Args> => definition,
  { schema: z },
)
