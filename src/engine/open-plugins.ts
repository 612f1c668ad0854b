import type { Plugins } from "../plugin/plugins.ts"
import type { TackleOptions } from "./options.ts"
import type { PluginWiring } from "./plugins.ts"

/** The plugins of an engine. */
export interface OpenPlugins {
  /** The loaded plugins. Undefined if the options name no plugin; in this case, no plugin code is loaded. */
  plugins?: Plugins
  /** The options after the plugins have changed them. */
  options: TackleOptions
  /** Waits until the plugins have received all events, then ends the commands that they started. */
  close(): Promise<void>
}

/** Loads the plugins, if any. Throws the errors of `openPluginsOf` after it has ended the commands of the plugins. */
export async function openPlugins(
  given: TackleOptions,
  wiring: Omit<PluginWiring, "signal">,
): Promise<OpenPlugins> {
  if (!given.plugins?.length) return { options: given, close: async () => {} }
  const ended = new AbortController()
  try {
    const { openPluginsOf } = await import("./plugins.ts")
    const { plugins, options } = await openPluginsOf(given, { ...wiring, signal: ended.signal })
    return {
      plugins,
      options,
      async close() {
        try {
          await plugins.host.close()
        } finally {
          ended.abort()
        }
      },
    }
  } catch (error) {
    ended.abort()
    throw error
  }
}
