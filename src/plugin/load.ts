import { within } from "../util/abort.ts"
import { errorMessage } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"
import { loadModule, type ModuleAliases } from "../util/load-module.ts"
import type { Hooks } from "./hooks.ts"
import type { PluginInput } from "./input.ts"
import { readHooks } from "./read-hooks.ts"
import type { PluginSource } from "./source.ts"

/** A plugin, ready: what it hooks into, under the name that people know it by. */
export interface Plugin {
  name: string
  hooks: Hooks
}

/** What kept a plugin out, or what of it is not used. Shown to the person; never stops the others. */
export interface PluginProblem {
  /** Name of the plugin. */
  file: string
  message: string
}

/** What plugins are loaded with. */
export interface PluginLoading {
  aliases: { file: ModuleAliases; package: ModuleAliases }
  /** What a plugin is called with. */
  input(name: string): PluginInput
  /** Runs code of a plugin so that an error which escapes it does not end the process. */
  contain<T>(plugin: string, work: () => Promise<T>): Promise<T>
  /** How long a plugin may take to be ready, in milliseconds. */
  limitMs: number
}

/** Long enough for a plugin that asks a server of its own at the start. Milliseconds. */
export const defaultLoadLimitMs = 20_000

/**
 * Loads the plugins one after the other, in the order given: one that begins may count on those before it. One that
 * cannot be loaded, throws or is not ready within the limit is a problem; the others go on.
 */
export async function loadPlugins(
  sources: readonly PluginSource[],
  loading: PluginLoading,
): Promise<{ plugins: Plugin[]; problems: PluginProblem[] }> {
  const plugins: Plugin[] = []
  const problems: PluginProblem[] = []
  for (const source of sources) {
    const { name } = source
    const report = (message: string) => problems.push({ file: name, message })
    try {
      const ready = loading.contain(name, () => loadPlugin(source, loading))
      const loaded = await within(ready, loading.limitMs)
      if (!loaded) report(`the plugin was not ready within ${loading.limitMs} ms; it is left out.`)
      else plugins.push(...loaded.map(({ hooks }) => ({ name, hooks })))
      const unused = [...new Set(loaded?.flatMap((each) => each.unused))]
      if (unused.length > 0) report(`Tackle does not call these hooks of the plugin: ${unused.join(", ")}.`)
    } catch (error) {
      report(`the plugin could not be loaded: ${errorMessage(error)}`)
    }
  }
  return { plugins, problems }
}

async function loadPlugin(
  { name, path, pinned, held, options, ...source }: PluginSource,
  { aliases, input }: PluginLoading,
): Promise<{ hooks: Hooks; unused: string[] }[]> {
  if (held) (await import("../util/pinned-files.ts")).pinPackages(held)
  const module = await loadModule(path, {
    aliases: source.package ? aliases.package : aliases.file,
    ...(pinned ? { pinned } : {}),
  })
  const found = pluginFunctions(module)
  if (found.length === 0)
    throw new TypeError(
      "it exports no plugin, which is a function that returns hooks (or { server: function })",
    )
  const loaded: { hooks: Hooks; unused: string[] }[] = []
  for (const plugin of found) {
    const returned: unknown = await plugin(input(name), options)
    // An exported helper that was taken for a plugin returns something else, or nothing.
    if (isRecord(returned)) loaded.push(readHooks(returned))
  }
  return loaded
}

type PluginFunction = (input: PluginInput, options?: PluginSource["options"]) => unknown

/** The default export where it is a plugin, else every exported function. */
function pluginFunctions(module: Record<string, unknown>): PluginFunction[] {
  const [main] = toPlugin(module.default)
  if (main) return [main]
  const others = Object.entries(module).flatMap(([key, value]) =>
    key === "module.exports" ? [] : toPlugin(value),
  )
  return [...new Set(others)]
}

function toPlugin(value: unknown): PluginFunction[] {
  const plugin = isRecord(value) && typeof value.server === "function" ? value.server : value
  return typeof plugin === "function" ? [plugin as PluginFunction] : []
}
