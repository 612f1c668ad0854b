import type { TackleEvent } from "../event/events.ts"
import type { Action } from "../schema/permission.ts"
import { problemOfTool, readTool } from "../tool/plain-tool.ts"
import type { Info } from "../tool/tool.ts"
import { errorMessage } from "../util/errors.ts"
import type { ModuleAliases } from "../util/load-module.ts"
import { currentTime } from "../util/time.ts"
import { StoredAuth } from "./auth.ts"
import type { PluginFailedError } from "./hooks.ts"
import { createPluginHost, defaultHookLimitMs, type PluginHost } from "./host.ts"
import { createInput, type PluginInputOptions } from "./input.ts"
import { defaultLoadLimitMs, loadPlugins, type Plugin, type PluginProblem } from "./load.ts"
import { type CommandLocation, variablesOfPlugins } from "./shell-env.ts"
import type { PluginSource } from "./source.ts"

/** Time limits for plugins, in milliseconds. */
export interface PluginLimits {
  loadMs: number
  hookMs: number
}

/** An engine's plugins. */
export interface Plugins {
  host: PluginHost
  tools: readonly { tool: Info; plugin: string }[]
  problems: readonly PluginProblem[]
  /** Returns the plugins' decision on a request. `action` is the decision that the rules made. */
  decide(request: HookedRequest, action: "allow" | "ask", signal: AbortSignal): Promise<Action>
  /** Returns the variables that plugins add to a command's environment. */
  variables(location: CommandLocation): Promise<Record<string, string>>
  /** Returns a plugin's options for a provider that the user signed in to. See `PluginHost.providerOptions`. */
  signedIn(
    provider: { id: string; options: Readonly<Record<string, unknown>> },
    credentials: { entry(providerID: string): Promise<unknown> },
  ): Promise<Record<string, unknown> | undefined>
  /** Sends an event to the plugins in OpenCode's format. */
  sendEvent(event: TackleEvent): void
}

/** The plugins to load, their input, and callbacks for problems. */
export interface PluginsOptions {
  sources: readonly PluginSource[]
  input: PluginInputOptions
  /**
   * Modules that plugins can import without installing them. `file` applies to plugin files, and `package` to packages.
   */
  aliases: { file: ModuleAliases; package: ModuleAliases }
  /** Runs a plugin's code, and attributes errors that escape the code to the plugin. */
  contain<T>(plugin: string, work: () => Promise<T>): Promise<T>
  onFailure(error: PluginFailedError): void
  /** Called once for each distinct message about ignored plugin output. */
  onIgnored(message: string): void
  limits?: Partial<PluginLimits>
}

/** Loads the plugins. Does not reject if a plugin fails. */
export async function openPlugins(options: PluginsOptions): Promise<Plugins> {
  const { sources, input, aliases, contain, onFailure, limits = {} } = options
  const { plugins, problems } = await loadPlugins(sources, {
    aliases,
    input: (name) => createInput(name, input),
    contain,
    limitMs: limits.loadMs ?? defaultLoadLimitMs,
  })
  const reported = new Set<string>()
  const onIgnored = (message: string) => {
    if (!reported.has(message)) options.onIgnored(message)
    reported.add(message)
  }
  const found = pluginTools(plugins)
  const host = createPluginHost({ plugins, contain, onFailure, limitMs: limits.hookMs ?? defaultHookLimitMs })
  return {
    host,
    tools: found.tools,
    problems: [...problems, ...found.problems],
    decide: (request, action, signal) => decideByPlugins(host, request, action, signal),
    variables: (location) => variablesOfPlugins(host, location, (names) => onIgnored(names.join(", "))),
    signedIn: (provider, credentials) =>
      host.providerOptions(
        provider,
        async () => StoredAuth.safeParse(await credentials.entry(provider.id)).data,
      ),
    sendEvent(event) {
      if (host.has("event")) for (const converted of toPluginEvents(event)) host.event(converted)
    },
  }
}

/**
 * Returns the tools of all plugins. An invalid tool is returned as a problem and does not affect other tools.
 */
function pluginTools(plugins: readonly Plugin[]): {
  tools: { tool: Info; plugin: string }[]
  problems: PluginProblem[]
} {
  const tools: { tool: Info; plugin: string }[] = []
  const problems: PluginProblem[] = []
  for (const { name, hooks } of plugins) {
    for (const [id, value] of Object.entries(hooks.tool ?? {})) {
      try {
        const tool = readTool(id, value)
        if (!tool)
          throw new TypeError(
            problemOfTool(value, { alone: true }) ?? "it must have description, args and execute",
          )
        tools.push({ tool, plugin: name })
      } catch (error) {
        problems.push({ file: name, message: `its tool "${id}" was not loaded: ${errorMessage(error)}.` })
      }
    }
  }
  return { tools, problems }
}

/** A permission request that plugins can decide. */
export interface HookedRequest {
  permission: string
  patterns: readonly string[]
  sessionID: string
  metadata?: Readonly<Record<string, unknown>>
  tool?: { messageID: string; callID: string }
}

/**
 * Returns the plugins' decision on a request. If a plugin fails, an allowed request becomes `ask`, because the plugin
 * might have denied the request. Throws the error that `abortedError` returns if the signal aborts.
 */
async function decideByPlugins(
  plugins: PluginHost,
  { permission, patterns, sessionID, metadata, tool }: HookedRequest,
  action: "allow" | "ask",
  signal: AbortSignal,
): Promise<Action> {
  if (!plugins.has("permission.ask")) return action
  const input = {
    id: tool?.callID ?? sessionID,
    type: permission,
    pattern: [...patterns],
    sessionID,
    messageID: tool?.messageID ?? "",
    ...(tool && { callID: tool.callID }),
    title: `${permission} ${patterns.join(", ")}`,
    metadata: { ...metadata },
    time: { created: currentTime() },
  }
  const { output, failed } = await plugins.run(
    "permission.ask",
    { input, output: { status: action } },
    signal,
  )
  return failed && output.status === "allow" ? "ask" : output.status
}

/** An event in OpenCode's format. */
interface PluginEvent {
  type: string
  properties: Record<string, unknown>
}

/**
 * Converts an event to OpenCode's events. Returns an empty array if OpenCode has no equivalent, and two events if
 * OpenCode reports the event twice.
 */
function toPluginEvents(event: TackleEvent): PluginEvent[] {
  const { sessionID } = event
  const converted = (type: string, properties: Record<string, unknown>): PluginEvent => ({
    type,
    properties: { sessionID, ...properties },
  })
  switch (event.type) {
    case "session.created":
    case "session.updated":
    case "session.deleted":
      return [converted(event.type, { info: event.session })]
    case "session.error":
      return [converted(event.type, { error: { name: event.error.name, data: event.error } })]
    case "message.created":
    case "message.updated":
      return [converted("message.updated", { info: event.message })]
    case "part.updated": {
      const updated = converted("message.part.updated", { part: event.part, time: event.time })
      return event.part.type === "compaction" ? [updated, converted("session.compacted", {})] : [updated]
    }
    case "part.removed":
      return [converted("message.part.removed", { messageID: event.messageID, partID: event.partID })]
    case "part.delta":
      return [
        converted("message.part.delta", { partID: event.partID, field: event.field, delta: event.delta }),
      ]
    case "permission.asked":
      return [converted(event.type, { ...event.request })]
    case "permission.replied":
      return [converted(event.type, { requestID: event.requestID, reply: event.reply })]
    case "question.asked":
      return [converted(event.type, { ...event.request })]
    case "question.replied":
      return [converted(event.type, { requestID: event.requestID, answers: event.answers })]
    case "question.rejected":
      return [converted(event.type, { requestID: event.requestID })]
    case "todo.updated":
      return [converted(event.type, { todos: event.todos })]
    case "context.filling":
    case "input.updated":
      return []
    case "run.completed":
      return [converted("session.status", { status: { type: "idle" } }), converted("session.idle", {})]
  }
}
