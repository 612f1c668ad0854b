import { within } from "../util/abort.ts"
import { errorMessage } from "../util/errors.ts"
import { isRecord, own } from "../util/json.ts"
import { loadModule, type ModuleAliases } from "../util/load-module.ts"
import { readAuthHook } from "./auth.ts"
import type { Hooks } from "./hooks.ts"
import type { PluginInput } from "./input.ts"
import type { PluginSource } from "./source.ts"

/** A loaded plugin and its name for messages. */
export interface Plugin {
  name: string
  hooks: Hooks
}

/**
 * A plugin that was not loaded, or hooks that are not supported. The problem is shown to the user and does not affect
 * other plugins.
 */
export interface PluginProblem {
  /** Path or package name of the plugin. */
  file: string
  message: string
}

/** The environment in which plugins are loaded. */
export interface PluginLoading {
  aliases: { file: ModuleAliases; package: ModuleAliases }
  /** Creates the argument for the plugin function. */
  input(name: string): PluginInput
  /** Runs a plugin's code so that errors that escape the code do not end the process. */
  contain<T>(plugin: string, work: () => Promise<T>): Promise<T>
  /** Time limit for loading one plugin, in milliseconds. */
  limitMs: number
}

/**
 * Default time limit for loading one plugin, in milliseconds. Enough for a plugin that requests data from a server at
 * startup.
 */
export const defaultLoadLimitMs = 20_000

/**
 * Loads the plugins one after another, so that each plugin can rely on the previous ones. A plugin that cannot be
 * loaded, throws or exceeds the limit is returned as a problem and does not affect other plugins.
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
      if (!loaded) report(`the plugin did not load within ${loading.limitMs} ms and is not used.`)
      else plugins.push(...loaded.map(({ hooks }) => ({ name, hooks })))
      const unused = [...new Set(loaded?.flatMap((each) => each.unused))]
      if (unused.length > 0) report(`Tackle does not support these plugin hooks: ${unused.join(", ")}.`)
    } catch (error) {
      report(`the plugin could not be loaded: ${errorMessage(error)}`)
    }
  }
  return { plugins, problems }
}

async function loadPlugin(
  { name, path, pinned, pinnedPackages, options, ...source }: PluginSource,
  { aliases, input }: PluginLoading,
): Promise<{ hooks: Hooks; unused: string[] }[]> {
  if (pinnedPackages) (await import("../util/pinned-files.ts")).pinPackages(pinnedPackages)
  const module = await loadModule(path, {
    aliases: source.package ? aliases.package : aliases.file,
    pinned,
  })
  const found = pluginFunctions(module)
  if (found.length === 0)
    throw new TypeError(
      "it exports no plugin: expected a function that returns hooks, or { server: function }",
    )
  const loaded: { hooks: Hooks; unused: string[] }[] = []
  for (const plugin of found) {
    const returned: unknown = await plugin(input(name), options)
    // A plugin file may also export helper functions, which return other values.
    if (isRecord(returned)) loaded.push(readHooks(returned))
  }
  return loaded
}

type PluginFunction = (input: PluginInput, options?: PluginSource["options"]) => unknown

/** Returns the default export if it is a plugin function, and every exported function if it is not. */
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

/** OpenCode's hook names that differ from Tackle's names. */
const otherNames: Readonly<Record<string, string>> = {
  "experimental.session.compacting": "session.compacting",
  "experimental.chat.messages.transform": "chat.messages.transform",
  "experimental.chat.system.transform": "chat.system.transform",
  "experimental.text.complete": "text.complete",
}

const known: ReadonlySet<string> = new Set([
  "config",
  "event",
  "tool",
  "auth",
  "dispose",
  "tool.execute.before",
  "tool.execute.after",
  "tool.definition",
  "permission.ask",
  "chat.message",
  "chat.params",
  "chat.headers",
  "chat.messages.transform",
  "chat.system.transform",
  "text.complete",
  "shell.env",
  "session.compacting",
] satisfies (keyof Hooks)[])

/**
 * Returns the hooks under Tackle's names, and the names of unsupported hooks. Throws `TypeError` if a hook is invalid.
 */
function readHooks(returned: Record<string, unknown>): { hooks: Hooks; unused: string[] } {
  const hooks: Record<string, unknown> = {}
  const unused: string[] = []
  for (const [written, value] of Object.entries(returned)) {
    if (value === undefined || value === null) continue
    const name = own(otherNames, written) ?? written
    if (!known.has(name)) {
      unused.push(written)
      continue
    }
    if (name === "auth") {
      hooks[name] = readAuthHook(value)
      continue
    }
    const fits = name === "tool" ? typeof value === "object" : typeof value === "function"
    if (!fits)
      throw new TypeError(
        `its "${written}" must be ${name === "tool" ? "a map of tools" : "a function"}, but its type is ${typeof value}`,
      )
    hooks[name] = typeof value === "function" ? value.bind(returned) : value
  }
  return { hooks, unused }
}
