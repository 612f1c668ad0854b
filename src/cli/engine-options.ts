import { ownConfigDirectories } from "../config/config-directories.ts"
import { instructionFiles } from "../config/instruction-files.ts"
import type { TackleOptions } from "../engine/options.ts"
import { noRetentionLimits } from "../engine/retention.ts"
import type { LogLevel } from "../util/log.ts"
import { definitionSource, definitionsOf } from "./definitions.ts"
import { instructionsNear, readInstructions } from "./instructions.ts"
import { warn } from "./notice.ts"
import type { Place } from "./place.ts"
import { trustedPlugins } from "./plugins.ts"
import { layersOf, type RuleFlags } from "./rule-layers.ts"
import { tellFault } from "./tell-fault.ts"
import { toolFilesOf } from "./tool-files.ts"
import { trustedItems } from "./trusted-items.ts"

/** What the config and trust of a place say of an engine. Tells of instructions that cannot be read. */
export async function engineOptions(place: Place, flags: RuleFlags): Promise<TackleOptions> {
  const { config } = place.config
  const plugins = trustedPlugins(place, trustedItems(place, "plugin"))
  const definitions = definitionsOf(place)
  return {
    directory: place.directory,
    worktree: place.worktree,
    dataDirectory: place.dataDirectory,
    environment: place.environment,
    providers: config.provider ?? {},
    toolFiles: toolFilesOf(place),
    plugins,
    onPluginLog: ({ plugin, level, message, extra }) =>
      place.log.write(isLevel(level) ? level : "info", `${plugin}: ${message}`, { extra }),
    override: config.override ?? [],
    disabledTools: Object.entries(config.tools ?? {}).flatMap(([id, on]) => (on ? [] : [id])),
    layers: layersOf(place, flags),
    ...definitions,
    definitions: definitionSource(place, { definitions, plugins }),
    instructions: await readInstructions(
      { found: instructionFiles(place), named: config.instructions ?? [] },
      { worktree: place.worktree, trusted: place.trusted },
      warn,
    ),
    instructionsNear: instructionsNear(
      place,
      { trusted: place.trusted, named: config.instructions ?? [] },
      warn,
    ),
    limits: limitsOf(place),
    onProblem: (message, error) => void tellFault(place, message, error),
    ...pick("model", config.model),
    ...pick("defaultAgent", config.default_agent),
    ...pick("shell", config.shell),
    ...pick("secrets", config.secrets),
    ...pick("passEnvironment", config.pass_environment),
    ...pick("sandbox", config.sandbox),
    configFiles: place.config.files.map(({ path }) => path),
    configDirectories: ownConfigDirectories(place),
    ...pick("search", config.search),
    ...pick("toolSearch", config.tool_search),
    ...pick("experimental", config.experimental),
    ...pick("lsp", config.lsp),
    ...pick("formatter", config.formatter),
    ...pick("mcp", config.mcp),
    trusted: place.trusted,
    mask: place.mask,
  }
}

/** The limits of the config. Where that has mistakes no old files are removed: how long they are kept may be one. */
export function limitsOf({ config: loaded, mistakes }: Place): NonNullable<TackleOptions["limits"]> {
  const { config } = loaded
  return {
    output: {
      ...pick("maxLines", config.truncate?.maxLines),
      ...pick("maxBytes", config.truncate?.maxBytes),
    },
    stream: {
      ...pick("firstByteMs", config.timeout?.firstByteSeconds, 1000),
      ...pick("idleMs", config.timeout?.idleSeconds, 1000),
    },
    retry: {
      ...pick("maxAttempts", config.retry?.maxAttempts),
      ...pick("ceilingMs", config.retry?.maxDelaySeconds, 1000),
    },
    subagent: {
      ...pick("depth", config.subagent?.depth),
      ...pick("timeMs", config.subagent?.timeoutSeconds, 1000),
      ...pick("steps", config.subagent?.steps),
      ...pick("tokens", config.subagent?.tokens),
    },
    retention: config.retention ?? {},
    ...pick("spillBytes", config.truncate?.spillBytes),
    ...pick("retentionDays", config.truncate?.retentionDays),
    ...(mistakes.length > 0 ? { retention: noRetentionLimits, retentionDays: noRetentionLimits.days } : {}),
  }
}

function isLevel(level: string): level is LogLevel {
  return ["debug", "info", "warn", "error"].includes(level)
}

type Picked<K extends string, V> = { [key in K]?: NonNullable<V> }

/** The key with its value, or nothing where there is none: optional keys are left out rather than undefined. */
function pick<K extends string, V>(key: K, value: V | undefined): Picked<K, V>
function pick<K extends string>(key: K, value: number | undefined, factor: number): Picked<K, number>
function pick(key: string, value: unknown, factor?: number): Record<string, unknown> {
  if (value === undefined) return {}
  return { [key]: factor === undefined ? value : Number(value) * factor }
}
