import { type ModuleAliases, resolveFrom } from "../util/load-module.ts"

/** Returns the modules that custom tools and plugins may import without installing them. */
export function toolAliases(): ModuleAliases {
  const zod = resolveFrom(import.meta.url, "zod")
  const own = ownModule("tool/index")
  return {
    ...(own === undefined ? {} : { "tackle/tool": own, tackle: own }),
    ...(zod === undefined ? {} : { zod }),
    ...pluginAliases(),
  }
}

/**
 * Returns the replacements for OpenCode's own packages. The replacements also apply to plugins that have these packages
 * installed.
 */
export function pluginAliases(): ModuleAliases {
  const own = ownModule("plugin/index")
  return own === undefined
    ? {}
    : { "tackle/plugin": own, "@opencode-ai/plugin": own, "@opencode-ai/plugin/tool": own }
}

/**
 * Returns the URL of one of Tackle's modules. Searches the sources, the library, and the library next to the command.
 */
function ownModule(name: string): string | undefined {
  return (
    resolveFrom(import.meta.url, `../${name}.ts`) ??
    resolveFrom(import.meta.url, `../${name}.js`) ??
    resolveFrom(import.meta.url, `../lib/${name}.js`)
  )
}
