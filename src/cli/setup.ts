import { existsSync, realpathSync, statSync } from "node:fs"
import { resolve } from "node:path"
import { keyVariables } from "../call/known-secrets.ts"
import { type LoadedConfig, loadConfig } from "../config/load.ts"
import {
  findWorktree,
  instructionFiles,
  type Location,
  ownConfigDirectories,
  projectTrustItems,
} from "../config/locate.ts"
import { shownName, wholeName } from "../config/shown-name.ts"
import { createCredentials } from "../model/credentials.ts"
import type { Layer } from "../permission/policy.ts"
import { parseRuleFlag } from "../permission/rules.ts"
import { openTrust, type Trust } from "../permission/trust.ts"
import type { FoundItem, TrustItem } from "../permission/trust-items.ts"
import { dataPlaces, defaultDataDirectory } from "../runtime/data-directory.ts"
import type { TackleOptions } from "../runtime/options.ts"
import { createTackle } from "../runtime/runtime.ts"
import { readSecrets } from "../runtime/secrets.ts"
import type { Tackle } from "../runtime/tackle.ts"
import { createSecretMask, type SecretMask } from "../tool/secrets.ts"
import { errorMessage, UsageError } from "../util/errors.ts"
import { homeDirectory } from "../util/home.ts"
import { createLog, type Log, type LogLevel } from "../util/log.ts"
import { definitionSource, definitionsOf } from "./definitions.ts"
import { instructionsNear, readInstructions } from "./instructions.ts"
import { eventLogger } from "./log-events.ts"
import { warn } from "./notice.ts"
import { misspeltPermissions } from "./permission-names.ts"
import { trustedPlugins } from "./plugins.ts"
import { reserveStdout } from "./stdout.ts"
import { toolFilesOf } from "./tool-files.ts"
import { trustedItems } from "./trusted-items.ts"

/** Flags of every command with a project. */
export interface PlaceFlags {
  dir?: string
  trust?: boolean
  verbose?: boolean
}

/** Flags of a command that prints for people or programs. */
export interface FormatFlags extends PlaceFlags {
  format: "text" | "json"
}

/** Flags that change what may be done. */
export interface RuleFlags {
  allow?: string[]
  deny?: string[]
}

/** Where a command runs and what it was told: all that is read from the process, the disk and the environment. */
export interface Place extends Location {
  dataDirectory: string
  config: LoadedConfig
  trust: Trust
  /** Whether the person trusted the project as it is, by `tackle trust` or `--trust`. One with no items was not asked about. */
  trusted: boolean
  /** Whether that is by `--trust`: it covers what was found, and nothing that comes later. */
  trustedForRun: boolean
  /** What the project brings, as it was found. */
  items: readonly FoundItem[]
  /** Those of the items that the person has not trusted as they are. Empty under `--trust`. */
  untrusted: readonly TrustItem[]
  log: Log
  /** Knows what is secret here. The engine of the place adds what it comes to know. */
  mask: SecretMask
  /** Puts marks in the place of secrets, for what is shown and noted. */
  hide: <T>(value: T) => T
}

/** Reads config and trust for the directory the flags name. Throws `UsageError` for what is wrong with them. */
export async function openPlace(flags: PlaceFlags): Promise<Place> {
  reserveStdout()
  const environment = { ...process.env }
  const directory = directoryOf(flags.dir)
  const worktree = findWorktree(directory)
  const dataDirectory = resolve(defaultDataDirectory(environment))
  const places = dataPlaces(dataDirectory)
  const location: Location = { directory, worktree, home: homeDirectory(), environment }
  const echo = flags.verbose ? (line: string) => process.stderr.write(`${line}\n`) : undefined

  const trust = openTrust(places.trust)
  if (trust.problem) warn(trust.problem)
  const check = (items: readonly TrustItem[]) => trust.isTrusted(worktree, items)
  const items = await projectTrustItems({ ...location, dataDirectory })
  const untrusted = flags.trust ? [] : check(items).changed
  const trusted = flags.trust === true || (items.length > 0 && untrusted.length === 0)
  const config = await loadConfig({ ...location, trusted: flags.trust ? true : check })
  for (const warning of config.warnings) warn(warning)
  const { provider: providers = {}, ...named } = config.config
  const credentials = createCredentials({ environment, authFile: places.auth })
  const stored = { environment, credentials, mcpTokens: places.mcpTokens }
  const mask = createSecretMask(await readSecrets({ ...named, providers }, stored))
  const hide = mask.value
  const log = createLog({ directory: places.logs, hide, ...(echo ? { echo } : {}) })
  const trustedForRun = flags.trust === true
  return {
    ...location,
    dataDirectory,
    config,
    trust,
    trusted,
    trustedForRun,
    items,
    untrusted,
    log,
    mask,
    hide,
  }
}

/** An engine for the place. `overrides` come last. */
export async function openTackle(
  place: Place,
  flags: RuleFlags,
  overrides: Partial<TackleOptions> = {},
): Promise<Tackle> {
  const { config } = place.config
  keepKeysFromChildren(config)
  const { stream, retry } = patience(config)
  const plugins = trustedPlugins(place, trustedItems(place, "plugin"))
  const tackle = await createTackle({
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
    ...definitionsOf(place),
    definitions: definitionSource(place, plugins),
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
    limits: {
      output: {
        ...pick("maxLines", config.truncate?.maxLines),
        ...pick("maxBytes", config.truncate?.maxBytes),
      },
      stream,
      retry,
      subagent: {
        ...pick("depth", config.subagent?.depth),
        ...pick("timeMs", config.subagent?.timeoutSeconds, 1000),
        ...pick("steps", config.subagent?.steps),
        ...pick("tokens", config.subagent?.tokens),
      },
      retention: config.retention ?? {},
      ...pick("spillBytes", config.truncate?.spillBytes),
      ...pick("retentionDays", config.truncate?.retentionDays),
    },
    onFault: (message, error) => void tellFault(place, message, error),
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
    ...overrides,
  })
  tackle.subscribe(eventLogger(place.log))
  for (const { file, message } of tackle.problems()) warn(place.hide(`${wholeName(file)}: ${message}`))
  tellIgnored(place)
  for (const line of misspeltPermissions(place, flags)) warn(line)
  return tackle
}

/** Notes a fault in the log and on stderr. Returns what was shown. */
export function tellFault(place: Place, message: string, error: unknown): string {
  place.log.write("error", message, { error: errorMessage(error) })
  const text = place.hide(`${message}: ${errorMessage(error)}`)
  warn(text)
  return text
}

/** The directory that `--dir` names, links followed. Throws `UsageError` where there is none. */
export function directoryOf(given: string | undefined): string {
  const directory = resolve(given ?? ".")
  if (!existsSync(directory)) throw new UsageError(`There is no directory ${directory} (--dir).`)
  if (!statSync(directory).isDirectory()) throw new UsageError(`${directory} is no directory (--dir).`)
  return realpathSync(directory)
}

/** The layers of rules above the defaults and below what was granted, an agent's own left out. */
export function layersOf({ config }: Place, flags: RuleFlags): Layer[] {
  const { user, project, untrusted, environment } = config.permission
  return [
    { name: "user", rules: user },
    { name: "project", rules: project },
    // Last of the project's, so that an allow of a trusted file does not undo what these tighten.
    { name: "project", rules: untrusted, tightenOnly: true },
    // The person's own words, though they stand above the project's.
    { name: "project", rules: environment },
    {
      name: "flags",
      rules: [
        ...(flags.allow ?? []).map((rule) => parseRuleFlag(rule, "allow")),
        ...(flags.deny ?? []).map((rule) => parseRuleFlag(rule, "deny")),
      ],
    },
  ]
}

/**
 * Custom tools run in this process and start programs with its environment. From here on keys are in our own copy alone,
 * unless the config passes them on.
 */
function keepKeysFromChildren({ provider, pass_environment: passed = [] }: LoadedConfig["config"]): void {
  for (const name of keyVariables(provider)) if (!passed.includes(name)) delete process.env[name]
}

function patience({ timeout, retry }: LoadedConfig["config"]) {
  return {
    stream: {
      ...pick("firstByteMs", timeout?.firstByteSeconds, 1000),
      ...pick("idleMs", timeout?.idleSeconds, 1000),
    },
    retry: { ...pick("maxAttempts", retry?.maxAttempts), ...pick("ceilingMs", retry?.maxDelaySeconds, 1000) },
  }
}

function tellIgnored({ config, untrusted }: Place): void {
  const files = untrusted.filter(({ kind }) => kind !== "config").map(({ path }) => shownName(path))
  const ignored = [...config.ignored, ...files]
  if (ignored.length === 0) return
  warn(
    `this project is not trusted, so these do not count: ${ignored.join("; ")}. \`tackle trust\` shows and enables them.`,
  )
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
