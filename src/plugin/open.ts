import type { TackleEvent } from "../event/events.ts"
import type { Action } from "../schema/permission.ts"
import type { Info } from "../tool/tool.ts"
import type { ModuleAliases } from "../util/load-module.ts"
import { StoredAuth } from "./auth.ts"
import type { PluginFailedError } from "./errors.ts"
import { describeEvent } from "./event-shape.ts"
import { createPluginHost, defaultHookLimitMs, type PluginHost } from "./host.ts"
import { createInput, type PluginSurroundings } from "./input.ts"
import { defaultLoadLimitMs, loadPlugins, type PluginProblem } from "./load.ts"
import { decideByPlugins, type HookedRequest } from "./permission-hook.ts"
import { pluginTools } from "./plugin-tools.ts"
import { type CommandPlace, variablesOfPlugins } from "./shell-env.ts"
import type { PluginSource } from "./source.ts"

/** How long plugins are waited for, in milliseconds. */
export interface PluginLimits {
  loadMs: number
  hookMs: number
}

/** The plugins of an engine. */
export interface Plugins {
  host: PluginHost
  tools: readonly { tool: Info; plugin: string }[]
  problems: readonly PluginProblem[]
  /** What the plugins say to a request that the rules allow or ask about. */
  decide(request: HookedRequest, action: "allow" | "ask", signal: AbortSignal): Promise<Action>
  /** The variables that plugins add to a command's. */
  variables(place: CommandPlace): Promise<Record<string, string>>
  /** What a plugin gives a provider's package for whoever is signed in: see `PluginHost.providerOptions`. */
  signedIn(
    provider: { id: string; options: Readonly<Record<string, unknown>> },
    credentials: { entry(providerID: string): Promise<unknown> },
  ): Promise<Record<string, unknown> | undefined>
  /** Tells the plugins of an event of ours, in OpenCode's words. */
  tell(event: TackleEvent): void
}

/** Which plugins there are, what they are given, and what becomes of those that fail. */
export interface PluginsOptions {
  sources: readonly PluginSource[]
  surroundings: PluginSurroundings
  /** What they may import without having it installed: those that are files, and those that are packages. */
  aliases: { file: ModuleAliases; package: ModuleAliases }
  /** Runs work of a plugin so that an error which escapes it is told as that of the plugin. */
  contain<T>(plugin: string, work: () => Promise<T>): Promise<T>
  onFailure(error: PluginFailedError): void
  /** Gets what was left out of what plugins gave, each text once. */
  onLeftOut(what: string): void
  limits?: Partial<PluginLimits>
}

/** Loads the plugins and makes them ready to be called. Never rejects for what a plugin does. */
export async function openPlugins(options: PluginsOptions): Promise<Plugins> {
  const { sources, surroundings, aliases, contain, onFailure, limits = {} } = options
  const { plugins, problems } = await loadPlugins(sources, {
    aliases,
    input: (name) => createInput(name, surroundings),
    contain,
    limitMs: limits.loadMs ?? defaultLoadLimitMs,
  })
  const leftOut = new Set<string>()
  const onLeftOut = (what: string) => {
    if (!leftOut.has(what)) options.onLeftOut(what)
    leftOut.add(what)
  }
  const found = pluginTools(plugins)
  const host = createPluginHost({ plugins, contain, onFailure, limitMs: limits.hookMs ?? defaultHookLimitMs })
  return {
    host,
    tools: found.tools,
    problems: [...problems, ...found.problems],
    decide: (request, action, signal) => decideByPlugins(host, request, action, signal),
    variables: (place) =>
      variablesOfPlugins(host, place, (names) =>
        onLeftOut(`variables that no plugin may set: ${names.join(", ")}`),
      ),
    signedIn: (provider, credentials) =>
      host.providerOptions(
        provider,
        async () => StoredAuth.safeParse(await credentials.entry(provider.id)).data,
      ),
    tell(event) {
      if (host.has("event")) for (const told of describeEvent(event)) host.event(told)
    },
  }
}
