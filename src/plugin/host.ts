import { abortedError, orAbort, TimeoutError, within } from "../util/abort.ts"
import { errorMessage } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"
import { type AuthHook, containAuth, type StoredAuth } from "./auth.ts"
import { copyPlain } from "./copy-plain.ts"
import { PluginBlockedError, PluginFailedError } from "./errors.ts"
import { checkOutput } from "./hook-outputs.ts"
import type { Hooks, OutputHook, OutputHooks } from "./hooks.ts"
import type { Plugin } from "./load.ts"

/** Calls the hooks of all plugins. There is none where there is no plugin. */
export interface PluginHost {
  /** True where a plugin that was not set aside has the hook: nothing need be prepared for one that nobody has. */
  has(hook: keyof Hooks): boolean
  /**
   * The output as the plugins leave it, one after the other in the order in which they were loaded: each gets what the
   * one before it made. A plugin that throws, takes too long or leaves what does not fit changes nothing and is set
   * aside; `failed` says that there was one. In `tool.execute.before` it blocks instead: throws
   * {@link PluginBlockedError}. Throws the signal's reason when it fires first.
   */
  run<H extends OutputHook>(
    hook: H,
    about: OutputHooks[H],
    signal?: AbortSignal,
  ): Promise<{ output: OutputHooks[H]["output"]; failed: boolean }>
  /** The config as each `config` hook leaves it, one after the other. A plugin that fails there changes nothing. */
  config(config: Readonly<Record<string, unknown>>): Promise<ChangedConfig[]>
  /**
   * What the first plugin for the provider gives its package, where somebody is signed in. Undefined: nobody is, there is
   * no such plugin, or it failed and was set aside.
   */
  providerOptions(
    provider: { id: string; options: Readonly<Record<string, unknown>> },
    auth: () => Promise<StoredAuth | undefined>,
  ): Promise<Record<string, unknown> | undefined>
  /** Every way to sign in that plugins have, in their order. */
  signIns(): AuthHook[]
  /** Tells every plugin, in order, some time after this returned. */
  event(event: { type: string; properties: Record<string, unknown> }): void
  /** Waits for events that are still told, then lets the plugins clean up. Never rejects. */
  close(): Promise<void>
}

/** The config after the hook of one plugin. */
export interface ChangedConfig {
  plugin: string
  config: Readonly<Record<string, unknown>>
}

/** Which plugins, and what becomes of those that fail. */
export interface PluginHostOptions {
  plugins: readonly Plugin[]
  /** How long one hook may take, in milliseconds. */
  limitMs: number
  /** Runs code of a plugin so that an error which escapes it does not end the process. */
  contain<T>(plugin: string, work: () => Promise<T>): Promise<T>
  /** Gets each plugin that was set aside, once. */
  onFailure(error: PluginFailedError): void
}

/** Milliseconds. Long enough for a program or a request to a server nearby. */
export const defaultHookLimitMs = 10_000

/** A plugin that throws, or takes longer than the limit, is set aside: none of its hooks is called again. */
export function createPluginHost({ plugins, limitMs, contain, onFailure }: PluginHostOptions): PluginHost {
  const aside = new Set<string>()
  /** What each plugin still has to be told, in order. */
  const told = new Map<Plugin, Promise<void>>()

  const having = (hook: keyof Hooks) => plugins.filter(({ name, hooks }) => hooks[hook] && !aside.has(name))

  function setAside(name: string, hook: string, error: unknown): void {
    if (aside.has(name)) return
    aside.add(name)
    onFailure(new PluginFailedError(name, hook, errorMessage(error), error))
  }

  /** Throws what the hook throws, and {@link TimeoutError}. */
  async function call(name: string, work: () => unknown): Promise<void> {
    const ended = contain(name, async () => {
      await work()
      return true
    })
    if ((await within(ended, limitMs)) === undefined)
      throw new TimeoutError(`it was not done within ${limitMs} ms`, limitMs)
  }

  async function runOne<H extends OutputHook>(
    { name, hooks }: Plugin,
    hook: H,
    { input, output }: OutputHooks[H],
    signal: AbortSignal | undefined,
  ): Promise<OutputHooks[H]["output"]> {
    const run = hooks[hook] as ((input: unknown, output: unknown) => unknown) | undefined
    if (!run) return output
    // Copies: what a hook does after its time is over changes nothing any more.
    const [ownInput, ownOutput] = [copyPlain(input), copyPlain(output)]
    const done = call(name, () => run(ownInput, ownOutput))
    await (signal ? orAbort(done, signal) : done)
    return checkOutput(hook, ownOutput)
  }

  return {
    has: (hook) => having(hook).length > 0,
    async run(hook, about, signal) {
      let { output } = about
      let failed = false
      for (const plugin of having(hook)) {
        try {
          output = await runOne(plugin, hook, { ...about, output }, signal)
        } catch (error) {
          if (signal?.aborted) throw abortedError(signal)
          const blocks = hook === "tool.execute.before"
          // There a throw is a plugin's word about the call, and no fault of the plugin.
          if (!blocks || error instanceof TimeoutError) setAside(plugin.name, hook, error)
          if (blocks) throw new PluginBlockedError(plugin.name, errorMessage(error), error)
          failed = true
        }
      }
      return { output, failed }
    },
    async config(config) {
      const steps: ChangedConfig[] = []
      for (const { name, hooks } of having("config")) {
        const own = copyPlain(steps.at(-1)?.config ?? config)
        try {
          await call(name, () => hooks.config?.(own))
          steps.push({ plugin: name, config: copyPlain(own) })
        } catch (error) {
          setAside(name, "config", error)
        }
      }
      return steps
    },
    async providerOptions({ id, options }, auth) {
      const plugin = having("auth").find(({ hooks }) => hooks.auth?.provider === id)
      const loader = plugin?.hooks.auth?.loader
      if (!plugin || !loader || !(await auth())) return undefined
      let given: unknown
      try {
        const about = { id, name: id, source: "config", models: {}, options: copyPlain(options) }
        await call(plugin.name, async () => {
          given = await loader(auth, about)
        })
        return isRecord(given) ? given : {}
      } catch (error) {
        setAside(plugin.name, "auth", error)
        return undefined
      }
    },
    signIns: () =>
      having("auth").flatMap(({ name, hooks }) =>
        hooks.auth === undefined ? [] : [containAuth(hooks.auth, (work) => contain(name, work))],
      ),
    event(event) {
      for (const plugin of having("event")) {
        const before = told.get(plugin) ?? Promise.resolve()
        told.set(
          plugin,
          before.then(async () => {
            if (aside.has(plugin.name)) return
            try {
              await call(plugin.name, () => plugin.hooks.event?.({ event: copyPlain(event) }))
            } catch (error) {
              setAside(plugin.name, "event", error)
            }
          }),
        )
      }
    },
    async close() {
      await within(Promise.all(told.values()), limitMs)
      for (const { name, hooks } of having("dispose")) {
        try {
          await call(name, () => hooks.dispose?.())
        } catch (error) {
          setAside(name, "dispose", error)
        }
      }
    },
  }
}
