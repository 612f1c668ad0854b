import type { Plugins } from "../plugin/open.ts"
import type { TackleOptions } from "./options.ts"
import type { PluginWiring } from "./plugins.ts"

/** The plugins of an engine. */
export interface OpenPlugins {
  /** Absent where none is named: then nothing of plugins is loaded. */
  plugins?: Plugins
  /** The options as the plugins leave them. */
  options: TackleOptions
  /** Waits until plugins have heard of everything. Their commands may go on until then, and end with it. */
  close(): Promise<void>
}

/** Throws what `openPluginsOf` throws, and then leaves no command of theirs behind. */
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
