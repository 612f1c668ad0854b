import { join } from "node:path"
import type { Plugin, PluginContext } from "rolldown"

/**
 * Groups that each become one file: a group's roots, named as a module in `source` would, with all they import
 * statically, but for what an earlier one has.
 */
export function createChunks(source: string, groups: readonly { name: string; roots: readonly string[] }[]) {
  const groupOf = new Map<string, string>()
  function collect(context: PluginContext, id: string, group: string): void {
    if (groupOf.has(id)) return
    const module = context.getModuleInfo(id)
    if (!module) throw new Error(`${id} is to be in the file "${group}", and nothing imports it.`)
    groupOf.set(id, group)
    for (const next of module.importedIds) collect(context, next, group)
  }
  const plugin: Plugin = {
    name: "chunks",
    async buildEnd(error) {
      if (error) return
      for (const { name, roots } of groups)
        for (const root of roots) {
          const found = await this.resolve(root, join(source, "index.ts"))
          collect(this, found?.id ?? root, name)
        }
    },
  }
  return {
    plugin,
    groups: groups.map(({ name }) => ({ name, test: (id: string) => groupOf.get(id) === name })),
  }
}
