import { existsSync, realpathSync, statSync } from "node:fs"
import { homedir } from "node:os"
import { join, resolve } from "node:path"
import { type LoadedConfig, loadConfig } from "../config/load.ts"
import {
  configDirectories,
  findWorktree,
  type Location,
  projectTrustItems,
  skillFiles,
} from "../config/locate.ts"
import { parseModelName } from "../model/model.ts"
import type { Layer } from "../permission/policy.ts"
import { parseRuleFlag } from "../permission/rules.ts"
import { openTrust, type Trust } from "../permission/trust.ts"
import { type TrustItem, trustPath } from "../permission/trust-items.ts"
import { findToolFiles } from "../registry/files.ts"
import { createTackle, defaultDataDirectory, type Tackle, type TackleOptions } from "../runtime.ts"
import { errorMessage, systemCode, UsageError } from "../util/errors.ts"
import { createLog, type Log } from "../util/log.ts"
import { isInside } from "../util/paths.ts"
import { readInstructions } from "./instructions.ts"
import { eventLogger } from "./log-events.ts"
import { reserveStdout } from "./stdout.ts"

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
  /** Items of the project that the person has not trusted as they are. Empty under `--trust`. */
  untrusted: readonly TrustItem[]
  log: Log
}

/** Reads config and trust for the directory the flags name. Throws `UsageError` for what is wrong with them. */
export async function openPlace(flags: PlaceFlags): Promise<Place> {
  stopWithReader()
  reserveStdout()
  const environment = process.env
  const directory = directoryOf(flags.dir)
  const worktree = findWorktree(directory)
  const dataDirectory = resolve(defaultDataDirectory(environment))
  const location: Location = { directory, worktree, home: homedir(), environment }
  const echo = flags.verbose ? (line: string) => process.stderr.write(`${line}\n`) : undefined
  const log = createLog({ directory: join(dataDirectory, "log"), ...(echo ? { echo } : {}) })

  const trust = openTrust(join(dataDirectory, "trust.json"))
  if (trust.problem) warn(trust.problem)
  const check = (items: readonly TrustItem[]) => trust.isTrusted(worktree, items)
  const untrusted = flags.trust ? [] : check(projectTrustItems(location)).changed
  const config = await loadConfig({ ...location, trusted: flags.trust ? true : check })
  for (const warning of config.warnings) warn(warning)
  return { ...location, dataDirectory, config, trust, untrusted, log }
}

/** An engine for the place. `overrides` come last. */
export async function openTackle(
  place: Place,
  flags: RuleFlags,
  overrides: Partial<TackleOptions> = {},
): Promise<Tackle> {
  const { config } = place.config
  const { stream, retry } = patience(config)
  const tackle = await createTackle({
    directory: place.directory,
    worktree: place.worktree,
    dataDirectory: place.dataDirectory,
    environment: place.environment,
    providers: config.provider ?? {},
    toolFiles: onlyTrusted(place, findToolFiles(configDirectories(place).map(({ path }) => path))),
    skillFiles: trustedSkillFiles(place),
    override: config.override ?? [],
    disabledTools: Object.entries(config.tools ?? {}).flatMap(([id, on]) => (on ? [] : [id])),
    layers: layersOf(place, flags),
    agents: agentsOf(config),
    agentRules: place.config.agentPermission,
    instructions: await readInstructions(
      config.instructions ?? [],
      { worktree: place.worktree, trusted: place.config.projectTrusted },
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
      ...pick("spillBytes", config.truncate?.spillBytes),
      ...pick("retentionDays", config.truncate?.retentionDays),
    },
    onFault: (message, error) => {
      place.log.write("error", message, { error: errorMessage(error) })
      warn(`${message}: ${errorMessage(error)}`)
    },
    ...pick("model", config.model),
    ...pick("defaultAgent", config.default_agent),
    ...pick("shell", config.shell),
    ...pick("secrets", config.secrets),
    ...pick("passEnvironment", config.pass_environment),
    ...pick("sandbox", config.sandbox),
    configFiles: place.config.files.map(({ path }) => path),
    ...pick("search", config.search),
    ...pick("experimental", config.experimental),
    ...overrides,
  })
  tackle.subscribe(eventLogger(place.log))
  for (const { file, message } of tackle.problems()) warn(`${file}: ${message}`)
  tellIgnored(place)
  return tackle
}

/** One line on stderr. */
export function warn(message: string): void {
  process.stderr.write(`tackle: ${message}\n`)
}

/** When whoever reads our output goes away (`tackle session show | head`), we go too, in order where a run is under way. */
function stopWithReader(): void {
  process.stdout.once("error", (error) => {
    if (systemCode(error) !== "EPIPE") throw error
    process.stdout.on("error", () => {})
    process.kill(process.pid, "SIGTERM")
  })
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
  const { user, project, environment } = config.permission
  return [
    { name: "user", rules: user },
    { name: "project", rules: project, tightenOnly: !config.projectTrusted },
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

function agentsOf(config: LoadedConfig["config"]): NonNullable<TackleOptions["agents"]> {
  return Object.fromEntries(
    Object.entries(config.agent ?? {}).map(([name, { model, ...agent }]) => [
      name,
      { ...agent, ...(model === undefined ? {} : { model: parseModelName(model) }) },
    ]),
  )
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

/** Skills of the person, and those of the project that are trusted as they are now, in rising precedence. */
export function trustedSkillFiles(place: Place): string[] {
  return onlyTrusted(place, skillFiles(place))
}

/** The files of the person, and those of the project that are trusted as they are now. */
function onlyTrusted(place: Place, files: readonly string[]): string[] {
  const untrusted = new Set(place.untrusted.map(({ path }) => path))
  const isTrusted = (file: string) =>
    !isInside(file, place.worktree) || !untrusted.has(trustPath(place.worktree, file))
  return files.filter(isTrusted)
}

function tellIgnored({ config, untrusted }: Place): void {
  const files = untrusted.filter(({ kind }) => kind !== "config").map(({ path }) => path)
  const ignored = [...config.ignored, ...files]
  if (ignored.length === 0) return
  warn(
    `this project is not trusted, so these do not count: ${ignored.join("; ")}. \`tackle trust\` shows and enables them.`,
  )
}

type Picked<K extends string, V> = { [key in K]?: NonNullable<V> }

/** The key with its value, or nothing where there is none: optional keys are left out rather than undefined. */
function pick<K extends string, V>(key: K, value: V | undefined): Picked<K, V>
function pick<K extends string>(key: K, value: number | undefined, factor: number): Picked<K, number>
function pick(key: string, value: unknown, factor?: number): Record<string, unknown> {
  if (value === undefined) return {}
  return { [key]: factor === undefined ? value : Number(value) * factor }
}
