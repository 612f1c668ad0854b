import { type ModuleAliases, resolveFrom } from "../util/load-module.ts"

/** What the file of a custom tool or plugin may import without having it installed. */
export function toolAliases(): ModuleAliases {
  const zod = resolveFrom(import.meta.url, "zod")
  const own = ownModule("tool/index")
  return {
    ...(own === undefined ? {} : { "tackle/tool": own, tackle: own }),
    ...(zod === undefined ? {} : { zod }),
    ...pluginAliases(),
  }
}

/** What any module made for OpenCode means by that program's own package, also one that has it installed. */
export function pluginAliases(): ModuleAliases {
  const own = ownModule("plugin/index")
  return own === undefined
    ? {}
    : { "tackle/plugin": own, "@opencode-ai/plugin": own, "@opencode-ai/plugin/tool": own }
}

/** A module of ours in the sources, in the library, or in the library beside the command. */
function ownModule(name: string): string | undefined {
  return (
    resolveFrom(import.meta.url, `../${name}.ts`) ??
    resolveFrom(import.meta.url, `../${name}.js`) ??
    resolveFrom(import.meta.url, `../lib/${name}.js`)
  )
}
