import { type TrustItem, trustPath } from "../permission/trust-items.ts"
import type { Rule } from "../schema/permission.ts"
import { errorMessage } from "../util/errors.ts"
import { displayPath } from "../util/paths.ts"
import { ConfigError } from "./errors.ts"
import type { ConfigLayer, ConfigSource } from "./layer.ts"
import { type ConfigFile, configFiles, type Location } from "./locate.ts"
import { entryOf, mergeNodes, type ObjectNode, toPlain } from "./node.ts"
import { readSmallFile } from "./read.ts"
import type { Config } from "./schema.ts"
import { shownName, shownNames } from "./shown-name.ts"

/** Tells which of a project's items the person has not trusted as they are now: `Trust.isTrusted` for its work tree. */
export type TrustCheck = (items: readonly TrustItem[]) => { changed: readonly TrustItem[] }

export interface LoadConfigOptions extends Location {
  /** Whether the project's own files count in full. A check decides for each file by its content. */
  trusted: boolean | TrustCheck
}

/** The config of a run. Nothing in it names a value's origin but `origin`. */
export interface LoadedConfig {
  /** Merged plain values, without `permission`. Objects have no prototype. */
  config: Config
  /**
   * Rules in rising precedence, each with its file and line. `user` holds `TACKLE_CONFIG` too, `environment` is
   * `TACKLE_CONFIG_CONTENT`: the person's own, but above the project. `untrusted` holds those of the project's files that
   * are not trusted: they come over `project` and may only tighten.
   */
  permission: { user: Rule[]; project: Rule[]; untrusted: Rule[]; environment: Rule[] }
  /** Rules of `agent.<name>.permission`, of trusted files alone. */
  agentPermission: Record<string, Rule[]>
  /** False as soon as one config file of the project is not trusted. */
  projectTrusted: boolean
  /** The files that were read, in rising precedence. */
  files: Pick<ConfigFile, "path" | "kind" | "scope">[]
  /** Where the value at the path stands that counts, such as `["provider", "openai", "name"]`. */
  origin(keyPath: readonly string[]): { file: string; line: number } | undefined
  /** For people, one line each. */
  warnings: string[]
  /** What an untrusted project said in vain, one entry a file: `tackle.json: provider, model`. To be shown as one line. */
  ignored: string[]
}

/** The name that stands for a file where the config came in a variable. */
const contentName = "TACKLE_CONFIG_CONTENT"

/**
 * Reads and merges every config there is. Objects merge by key, lists replace each other except `instructions` and
 * `secrets`, rules line up in written order. Missing files are normal, and with none at all no parser or schema is loaded.
 * Throws `ConfigError` for a file that cannot be read or understood, and for unknown keys and wrong types in Tackle's own
 * files; in OpenCode's these are warnings.
 */
export async function loadConfig(options: LoadConfigOptions): Promise<LoadedConfig> {
  const sources = await withTrust(readSources(options), options)
  if (sources.length === 0) return merge([], options.worktree)
  const { readLayer } = await import("./layer.ts")
  const layers: ConfigLayer[] = []
  for (const source of sources) layers.push(await readLayer(source, options))
  return merge(layers, options.worktree)
}

function readSources(options: LoadConfigOptions): ConfigSource[] {
  const sources = configFiles(options).flatMap((file) => readSource(file) ?? [])
  const text = options.environment[contentName]
  if (!text) return sources
  const content = { path: contentName, kind: "tackle", scope: "env", text, hash: "", trusted: true } as const
  return [...sources, content]
}

function readSource({ path, kind, scope, required }: ConfigFile): ConfigSource | undefined {
  const place = { file: path, line: 1, column: 1 }
  try {
    const file = readSmallFile(path)
    if (file) return { path, kind, scope, ...file, trusted: true }
  } catch (error) {
    throw new ConfigError([{ place, text: `the config file cannot be read: ${errorMessage(error)}.` }], error)
  }
  if (!required) return undefined
  throw new ConfigError([{ place, text: "TACKLE_CONFIG names this file, and there is none." }])
}

async function withTrust(sources: ConfigSource[], options: LoadConfigOptions): Promise<ConfigSource[]> {
  const { trusted } = options
  if (trusted === true) return sources
  const judged: ConfigSource[] = []
  for (const source of sources) {
    const ofProject = source.scope === "project"
    if (!ofProject) judged.push(source)
    else if (trusted === false) judged.push({ ...source, trusted: false })
    else judged.push(await judge(source, trusted, options))
  }
  return judged
}

/** What counts of a trusted file, also of what it puts in, is what the check was about. */
async function judge(
  source: ConfigSource,
  check: TrustCheck,
  options: LoadConfigOptions,
): Promise<ConfigSource> {
  const { readTrustContent } = await import("./trust-content.ts")
  const { hash, read } = await readTrustContent(source, options)
  const item: TrustItem = { kind: "config", path: trustPath(options.worktree, source.path), hash }
  return { ...source, trusted: check([item]).changed.length === 0, read }
}

function merge(layers: readonly ConfigLayer[], worktree: string): LoadedConfig {
  const nowhere: ObjectNode = { kind: "object", place: { file: "", line: 1, column: 1 }, entries: [] }
  const tree = layers.reduce((merged, layer) => mergeNodes(merged, layer.tree), nowhere)
  const rulesOf = (wanted: (source: ConfigSource) => boolean) =>
    layers.filter(({ source }) => wanted(source)).flatMap(({ rules }) => rules.permission)
  const agentPermission: Record<string, Rule[]> = Object.create(null)
  for (const { rules } of layers) {
    for (const [name, own] of rules.agents) agentPermission[name] = [...(agentPermission[name] ?? []), ...own]
  }
  return {
    // Each file was checked against the schema, and merging by key keeps what the schema says.
    config: toPlain(tree) as Config,
    permission: {
      user: rulesOf(({ path, scope }) => scope !== "project" && path !== contentName),
      project: rulesOf(({ scope, trusted }) => scope === "project" && trusted),
      untrusted: rulesOf(({ trusted }) => !trusted),
      environment: rulesOf(({ path }) => path === contentName),
    },
    agentPermission,
    projectTrusted: layers.every(({ source }) => source.trusted),
    files: layers.map(({ source: { path, kind, scope } }) => ({ path, kind, scope })),
    origin: (keyPath) => originOf(tree, keyPath),
    warnings: layers.flatMap((layer) => layer.warnings),
    ignored: layers
      .filter((layer) => layer.ignored.length > 0)
      .map(
        ({ source, ignored }) => `${shownName(displayPath(source.path, worktree))}: ${shownNames(ignored)}`,
      ),
  }
}

function originOf(tree: ObjectNode, keyPath: readonly string[]): { file: string; line: number } | undefined {
  const [key, ...rest] = keyPath
  if (key === undefined) return undefined
  const entry = entryOf(tree, key)
  if (entry === undefined) return undefined
  if (rest.length > 0) return entry.value.kind === "object" ? originOf(entry.value, rest) : undefined
  return { file: entry.place.file, line: entry.place.line }
}
