import { problemOfTool, readTool } from "../tool/plain-tool.ts"
import type { Info } from "../tool/tool.ts"
import { errorMessage } from "../util/errors.ts"
import type { Plugin, PluginProblem } from "./load.ts"

/** The tools of all plugins, each with the name of its plugin. One that is none is a problem; the others are there. */
export function pluginTools(plugins: readonly Plugin[]): {
  tools: { tool: Info; plugin: string }[]
  problems: PluginProblem[]
} {
  const tools: { tool: Info; plugin: string }[] = []
  const problems: PluginProblem[] = []
  for (const { name, hooks } of plugins) {
    for (const [id, value] of Object.entries(hooks.tool ?? {})) {
      try {
        const tool = readTool(id, value)
        if (!tool)
          throw new TypeError(
            problemOfTool(value, { alone: true }) ?? "it has no description, args and execute",
          )
        tools.push({ tool, plugin: name })
      } catch (error) {
        problems.push({ file: name, message: `its tool "${id}" is left out: ${errorMessage(error)}.` })
      }
    }
  }
  return { tools, problems }
}
