import * as z from "zod"
import { Message } from "../schema/message.ts"
import { FilePart, Part, TextPart } from "../schema/part.ts"
import { Action } from "../schema/permission.ts"
import { describeIssues } from "../tool/validate.ts"
import { abortedError, orAbort, TimeoutError, within } from "../util/abort.ts"
import { errorMessage } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"
import { type AuthHook, containAuth, type StoredAuth } from "./auth.ts"
import { copyPlain } from "./copy-plain.ts"
import {
  type Hooks,
  type OutputHook,
  type OutputHooks,
  PluginBlockedError,
  PluginFailedError,
} from "./hooks.ts"
import type { Plugin } from "./load.ts"

/** Calls the hooks of all plugins. Created only if plugins are loaded. */
export interface PluginHost {
  /** Returns true if an enabled plugin has the hook. Callers use it to avoid preparing input that no plugin needs. */
  has(hook: keyof Hooks): boolean
  /**
   * Runs a hook in all plugins, in load order. Each plugin receives the output of the previous one. If a plugin throws,
   * exceeds the limit or returns an invalid output, the plugin's changes are dropped, the plugin is disabled, and
   * `failed` is true. In `tool.execute.before`, each of these failures blocks the call with {@link PluginBlockedError}
   * instead, and only a plugin that exceeds the limit is disabled. Throws the error that `abortedError` returns if the
   * signal aborts.
   */
  run<H extends OutputHook>(
    hook: H,
    about: OutputHooks[H],
    signal?: AbortSignal,
  ): Promise<{ output: OutputHooks[H]["output"]; failed: boolean }>
  /** Runs the `config` hooks and returns the config after each hook. Ignores changes from a plugin that fails. */
  config(config: Readonly<Record<string, unknown>>): Promise<ChangedConfig[]>
  /**
   * Returns the provider options from the first plugin for the provider, or undefined if no plugin supports the
   * provider, the plugin has no `loader`, the user is not signed in, or the plugin failed and was disabled.
   */
  providerOptions(
    provider: { id: string; options: Readonly<Record<string, unknown>> },
    auth: () => Promise<StoredAuth | undefined>,
  ): Promise<Record<string, unknown> | undefined>
  /** Returns the sign-in methods of all enabled plugins, in load order. */
  signIns(): AuthHook[]
  /** Sends the event to every plugin with an `event` hook. Each receives its events in order. Returns immediately. */
  event(event: { type: string; properties: Record<string, unknown> }): void
  /** Waits for pending events up to the time limit, then calls the `dispose` hooks. Never rejects. */
  close(): Promise<void>
}

/** The config after a plugin's `config` hook. */
export interface ChangedConfig {
  plugin: string
  config: Readonly<Record<string, unknown>>
}

/** The plugins, the time limit for their hooks, and callbacks. */
export interface PluginHostOptions {
  plugins: readonly Plugin[]
  /** Time limit for one hook, in milliseconds. */
  limitMs: number
  /** Runs a plugin's code so that errors that escape the code do not end the process. */
  contain<T>(plugin: string, work: () => Promise<T>): Promise<T>
  /** Called when a plugin is disabled, once per plugin. */
  onFailure(error: PluginFailedError): void
}

/** Default time limit for one hook, in milliseconds. Enough to run a program or send a request to a nearby server. */
export const defaultHookLimitMs = 10_000

/**
 * Creates a host. A plugin that fails is disabled, except as described for `tool.execute.before`, and none of its hooks
 * is called again.
 */
export function createPluginHost({ plugins, limitMs, contain, onFailure }: PluginHostOptions): PluginHost {
  const disabled = new Set<string>()
  /** The latest pending event of each plugin. */
  const pending = new Map<Plugin, Promise<void>>()

  const having = (hook: keyof Hooks) =>
    plugins.filter(({ name, hooks }) => hooks[hook] && !disabled.has(name))

  function disable(name: string, hook: string, error: unknown): void {
    if (disabled.has(name)) return
    disabled.add(name)
    onFailure(new PluginFailedError(name, hook, errorMessage(error), error))
  }

  /** Calls a hook. Throws the hook's errors, and {@link TimeoutError} at the limit. */
  async function call(name: string, work: () => unknown): Promise<void> {
    const ended = contain(name, async () => {
      await work()
      return true
    })
    if ((await within(ended, limitMs)) === undefined)
      throw new TimeoutError(`it did not finish within ${limitMs} ms`, limitMs)
  }

  async function runOne<H extends OutputHook>(
    { name, hooks }: Plugin,
    hook: H,
    { input, output }: OutputHooks[H],
    signal: AbortSignal | undefined,
  ): Promise<OutputHooks[H]["output"]> {
    const run = hooks[hook] as ((input: unknown, output: unknown) => unknown) | undefined
    if (!run) return output
    // Passes copies of the input and the output, because changes after the time limit must have no effect.
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
          // An exception in `tool.execute.before` is a decision to block the call, not a plugin failure.
          if (!blocks || error instanceof TimeoutError) disable(plugin.name, hook, error)
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
          disable(name, "config", error)
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
        disable(plugin.name, "auth", error)
        return undefined
      }
    },
    signIns: () =>
      having("auth").flatMap(({ name, hooks }) =>
        hooks.auth === undefined ? [] : [containAuth(hooks.auth, (work) => contain(name, work))],
      ),
    event(event) {
      for (const plugin of having("event")) {
        const before = pending.get(plugin) ?? Promise.resolve()
        pending.set(
          plugin,
          before.then(async () => {
            if (disabled.has(plugin.name)) return
            try {
              await call(plugin.name, () => plugin.hooks.event?.({ event: copyPlain(event) }))
            } catch (error) {
              disable(plugin.name, "event", error)
            }
          }),
        )
      }
    },
    async close() {
      await within(Promise.all(pending.values()), limitMs)
      for (const { name, hooks } of having("dispose")) {
        try {
          await call(name, () => hooks.dispose?.())
        } catch (error) {
          disable(name, "dispose", error)
        }
      }
    },
  }
}

const record = z.record(z.string(), z.unknown())

/** Fields that a plugin can omit in the parts that it adds. These parts receive their ids later. */
const added = { id: true, sessionID: true, messageID: true } as const
const MessagePart = z.discriminatedUnion("type", [TextPart.partial(added), FilePart.partial(added)])

const TransformedMessage = z.object({ info: Message, parts: z.array(z.union([Part, MessagePart])) })

const shapes: { [H in OutputHook]: z.ZodType<OutputHooks[H]["output"]> } = {
  "tool.execute.before": z.object({ args: record }),
  "tool.execute.after": z.object({ title: z.string(), output: z.string(), metadata: record }),
  "tool.definition": z.object({ description: z.string().min(1), parameters: record }),
  "permission.ask": z.object({ status: Action }),
  "chat.message": z.object({ message: record, parts: z.array(MessagePart) }),
  "chat.params": z.object({
    temperature: z.number().optional(),
    topP: z.number().optional(),
    topK: z.number().optional(),
    maxOutputTokens: z.number().int().positive().optional(),
    options: record,
  }),
  "chat.headers": z.object({ headers: z.record(z.string(), z.string()) }),
  "chat.messages.transform": z.object({ messages: z.array(TransformedMessage) }),
  "chat.system.transform": z.object({ system: z.array(z.string()) }),
  "text.complete": z.object({ text: z.string() }),
  "shell.env": z.object({ env: z.record(z.string(), z.string()) }),
  "session.compacting": z.object({ context: z.array(z.string()), prompt: z.string().optional() }),
}

/** Returns a hook's output as plain data. Throws `TypeError` with the issues if the output is invalid. */
function checkOutput<H extends OutputHook>(hook: H, output: unknown): OutputHooks[H]["output"] {
  const parsed = shapes[hook].safeParse(copyPlain(output), { reportInput: true })
  if (parsed.success) return parsed.data
  throw new TypeError(`its output is invalid: ${describeIssues(parsed.error)}`)
}
