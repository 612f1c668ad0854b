import * as z from "zod"
import type { AgentConfig } from "../agent/agent.ts"
import { contain } from "../call/escaped-errors.ts"
import { McpConfig } from "../mcp/client/config.ts"
import { ProviderConfig, parseModelName } from "../model/model.ts"
import type { ClientHost } from "../plugin/client.ts"
import { copyPlain } from "../plugin/copy-plain.ts"
import type { ChangedConfig } from "../plugin/host.ts"
import type { PluginInputOptions } from "../plugin/input.ts"
import { openPlugins, type Plugins } from "../plugin/plugins.ts"
import type { Store } from "../store/store.ts"
import { describeIssues } from "../tool/validate.ts"
import { errorMessage, UsageError } from "../util/errors.ts"
import { canonicalJson, isRecord, own } from "../util/json.ts"
import type { TackleOptions } from "./options.ts"
import { pluginAliases, toolAliases } from "./tools.ts"

/** Engine services and functions that plugins need. */
export interface PluginWiring
  extends Pick<PluginInputOptions, "directory" | "worktree" | "environment" | "signal" | "record"> {
  /** Returns the store, or undefined until the store is open. Plugins are loaded before the store is opened. */
  store(): Store | undefined
  saveAuth: ClientHost["saveAuth"]
  onProblem(message: string, error: unknown): void
}

/** Loads the plugins in the options. Returns the options after the plugins' `config` hooks have changed them. */
export async function openPluginsOf(
  options: TackleOptions,
  wiring: PluginWiring,
): Promise<{ plugins: Plugins; options: TackleOptions }> {
  const { onProblem, store, worktree, saveAuth, ...place } = wiring
  const config = configOf(options)
  const open = () => {
    const opened = store()
    if (opened) return opened
    throw new UsageError("Sessions cannot be read while plugins load. Read them in a hook.")
  }
  const plugins = await openPlugins({
    sources: options.plugins ?? [],
    input: {
      ...place,
      worktree,
      log: ({ plugin, level, message, extra }) => options.onPluginLog?.({ plugin, level, message, extra }),
      session: async (id) => open().session(id),
      sessions: async () => open().sessions({ worktree, parentID: null }),
      messages: async (id) => open().messages(id),
      todos: async (id) => open().todos(id),
      config: () => config,
      saveAuth,
    },
    aliases: { file: toolAliases(), package: pluginAliases() },
    contain: (plugin, work) =>
      contain(work, (error) => onProblem(`uncaught error in the plugin ${plugin}`, error)),
    onFailure: (error) => onProblem("a plugin was disabled", error),
    onIgnored: (message) => onProblem("environment variables from plugins were ignored", new Error(message)),
    limits: options.limits?.plugin,
  })
  const problems = [...plugins.problems]
  let changed = options
  let before: ChangedConfig["config"] = config
  for (const { plugin, config: after } of await plugins.host.config(config)) {
    const report = (message: string) => problems.push({ file: plugin, message })
    changed = applyConfig(changed, { before, after, report })
    before = after
  }
  return { plugins: { ...plugins, problems }, options: changed }
}

/**
 * Returns the config that plugins receive: the options that they may change, in the config format. The commands and
 * permissions in it are empty.
 */
function configOf({ model, defaultAgent, agents = {}, providers = {}, mcp = {} }: TackleOptions) {
  const agent = Object.entries(agents).map(([name, { model: ref, ...rest }]) => [
    name,
    ref ? { ...rest, model: `${ref.providerID}/${ref.modelID}` } : rest,
  ])
  return {
    model: typeof model === "string" ? model : undefined,
    default_agent: defaultAgent,
    agent: Object.fromEntries(agent) as Record<string, unknown>,
    provider: providers,
    mcp,
    command: {},
    permission: {},
  }
}

/**
 * The agent settings that plugins may change. Rules are not included, because plugins cannot loosen them. {@link
 * withBounds} restores the `tools` of existing agents.
 */
const PluginAgent = z.object({
  description: z.string().optional(),
  mode: z.enum(["primary", "subagent", "all"]).optional(),
  prompt: z.string().optional(),
  model: z
    .string()
    .transform((name) => parseModelName(name))
    .optional(),
  temperature: z.number().optional(),
  top_p: z.number().optional(),
  steps: z.number().int().positive().optional(),
  tools: z.record(z.string(), z.boolean()).optional(),
  hidden: z.boolean().optional(),
  disable: z.boolean().optional(),
})

/**
 * The config keys that plugins may change. Each function converts the value of its key to an option. Changes to other
 * keys are reported and ignored.
 */
const changeable: Readonly<
  Record<string, (value: unknown, options: TackleOptions) => Partial<TackleOptions>>
> = {
  model: (value) => ({ model: z.string().parse(value) }),
  default_agent: (value) => ({ defaultAgent: z.string().parse(value) }),
  agent: (value, { agents = {} }) => ({
    agents: withBounds(z.record(z.string(), PluginAgent).parse(value), agents),
  }),
  provider: (value) => ({ providers: parseKnown(z.record(z.string(), ProviderConfig), value) }),
  mcp: (value) => ({ mcp: McpConfig.parse(value) }),
}

function applyConfig(
  options: TackleOptions,
  {
    before,
    after,
    report,
  }: { before: ChangedConfig["config"]; after: ChangedConfig["config"]; report(message: string): void },
): TackleOptions {
  let result = options
  for (const [key, value] of Object.entries(after)) {
    if (value === undefined || same(own(before, key), value)) continue
    const change = own(changeable, key)
    if (!change) {
      report(`its config hook changed "${key}", which plugins cannot change.`)
      continue
    }
    try {
      result = { ...result, ...change(value, result) }
    } catch (error) {
      const why = error instanceof z.ZodError ? describeIssues(error) : errorMessage(error)
      report(`its config hook wrote an invalid "${key}": ${why}.`)
    }
  }
  return result
}

/** Restores the `tools` setting of existing agents, even if a plugin has changed or removed it. */
function withBounds(
  changed: Readonly<Record<string, AgentConfig>>,
  before: Readonly<Record<string, AgentConfig>>,
): Record<string, AgentConfig> {
  const bounds = Object.entries(before).flatMap(([name, { tools }]): [string, AgentConfig][] =>
    tools === undefined ? [] : [[name, { tools }]],
  )
  const kept = new Map(bounds)
  for (const [name, agent] of Object.entries(changed)) kept.set(name, { ...agent, ...kept.get(name) })
  return Object.fromEntries(kept)
}

/**
 * Parses a value and drops keys that Tackle does not know, because plugins write OpenCode's config. Throws `ZodError`
 * if the value is invalid.
 */
function parseKnown<T>(schema: z.ZodType<T>, value: unknown): T {
  const first = schema.safeParse(value)
  if (first.success) return first.data
  const known = copyPlain(value)
  for (const issue of first.error.issues) {
    if (issue.code !== "unrecognized_keys") continue
    let holder: unknown = known
    for (const step of issue.path) holder = isRecord(holder) ? holder[String(step)] : undefined
    if (isRecord(holder)) for (const key of issue.keys) delete holder[key]
  }
  return schema.parse(known)
}

function same(before: unknown, after: unknown): boolean {
  if (isRecord(after) && Object.keys(after).length === 0 && before === undefined) return true
  return canonicalJson(before ?? null) === canonicalJson(after)
}
