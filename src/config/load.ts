import { type TrustItem, trustPath } from "../permission/trust-items.ts"
import type { NamedPlugin } from "../plugin/source.ts"
import type { Rule } from "../schema/permission.ts"
import { errorMessage } from "../util/errors.ts"
import { displayPath } from "../util/paths.ts"
import { withoutToolsGivenBack } from "./agent-tools.ts"
import { checkFormatters } from "./check-formatters.ts"
import { type ConfigFile, configFiles } from "./config-files.ts"
import { ConfigError } from "./errors.ts"
import type { ConfigLayer, ConfigSource } from "./layer.ts"
import type { Location } from "./location.ts"
import { entryOf, mergeNodes, type ObjectNode, toPlain } from "./node.ts"
import { trustKind } from "./project-trust-items.ts"
import { readSmallFile } from "./read.ts"
import type { Config } from "./schema.ts"
import { shownName, shownNames } from "./shown-name.ts"

/** Tells which of a project's items the person has not trusted as they are now: `Trust.isTrusted` for its work tree. */
export type TrustCheck = (items: readonly TrustItem[]) => { changed: readonly TrustItem[] }

/** Where the config is looked for, and what of it counts. */
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
  /** Rules of `agent.<name>.permission` and of agents in Markdown, in the person's own files. */
  agentPermission: Record<string, Rule[]>
  /** Those of a trusted project's files: they come over the person's and lift no deny. */
  projectAgentPermission: Record<string, Rule[]>
  /** Those of `TACKLE_CONFIG_CONTENT`, which come over the project's. */
  environmentAgentPermission: Record<string, Rule[]>
  /** What the files name as plugins, each with the file it stands in. Of trusted files alone. */
  plugins: (NamedPlugin & Pick<ConfigFile, "path" | "scope">)[]
  /** False as soon as one config file of the project is not trusted. */
  projectTrusted: boolean
  /** The files that were read, in rising precedence. */
  files: Pick<ConfigFile, "path" | "kind" | "scope">[]
  /** Where the value at the path stands that counts, such as `["provider", "openai", "name"]`. */
  origin(keyPath: readonly string[]): { file: string; line: number } | undefined
  /** For people, one line each. */
  warnings: string[]
  /** What is not used of agents and commands in Markdown, most of them other programs', one line each. */
  notes: { file: string; text: string }[]
  /**
   * The same with the agents and commands in Markdown as they are now, and all else as it was read. Throws `ConfigError`
   * like {@link loadConfig}.
   */
  withTexts(trusted: LoadConfigOptions["trusted"]): Promise<LoadedConfig>
  /** What an untrusted project said in vain, one entry a file: `tackle.json: provider, model`. To be shown as one line. */
  ignored: string[]
}

/** The name that stands for a file where the config came in a variable. */
const contentName = "TACKLE_CONFIG_CONTENT"

/**
 * Reads and merges every config there is. Objects merge by key, lists replace each other except `instructions` and
 * `secrets`, rules line up in written order. Missing files are normal, and with none at all no parser or schema is loaded.
 * Throws `ConfigError` for a file that cannot be read or understood, for formatters that nobody knows, and for unknown keys
 * and wrong types in Tackle's own files; in OpenCode's these are warnings.
 */
export async function loadConfig(options: LoadConfigOptions): Promise<LoadedConfig> {
  return fromLayers(await readLayers(await withTrust(readSources(options), options), options), options)
}

/** Sources, understood, and what is said of those that were left out. */
interface ReadLayers {
  layers: ConfigLayer[]
  notes: LoadedConfig["notes"]
}

async function readLayers(sources: readonly ConfigSource[], options: LoadConfigOptions): Promise<ReadLayers> {
  if (sources.length === 0) return { layers: [], notes: [] }
  const { readLayer } = await import("./layer.ts")
  const layers: ConfigLayer[] = []
  const notes: LoadedConfig["notes"] = []
  for (const source of sources) {
    try {
      layers.push(await readLayer(source, options))
    } catch (error) {
      // A file that somebody wrote for another program in its own format stops nothing here.
      if (!isForeignText(source) || !(error instanceof ConfigError)) throw error
      const text = `${error.message} The file is left out.`
      notes.push({ file: source.path, text })
    }
  }
  return { layers, notes }
}

function fromLayers({ layers, notes }: ReadLayers, options: LoadConfigOptions): LoadedConfig {
  const loaded = merge(layers, options.worktree)
  return {
    ...loaded,
    notes: [...notes, ...loaded.notes],
    async withTexts(trusted) {
      const now = { ...options, trusted }
      const files = configFiles(options)
      const texts = await withTrust(
        files.filter(isText).flatMap((file) => readSource(file) ?? []),
        now,
      )
      const read = await readLayers(texts, now)
      const settings = layers.filter(({ source }) => !isText(source))
      const order = new Map(files.map(({ path }, index) => [path, index]))
      // What came in a variable is no file, and stands over all.
      const rank = ({ source }: ConfigLayer) => order.get(source.path) ?? files.length
      const all = [...settings, ...read.layers].sort((a, b) => rank(a) - rank(b))
      return fromLayers({ layers: all, notes: read.notes }, options)
    },
  }
}

function isForeignText(source: Pick<ConfigSource, "path" | "kind">): boolean {
  return source.kind !== "tackle" && isText(source)
}

/** An agent or command in Markdown. */
function isText({ path }: Pick<ConfigSource, "path">): boolean {
  return trustKind(path) !== "config"
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
    // It cannot be pinned either, so that it is told as not trusted.
    if (isForeignText({ path, kind })) return undefined
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
    const looked = !ofProject
      ? source
      : trusted === false
        ? { ...source, trusted: false }
        : await judge(source, trusted, options)
    // An agent or command has no part that would count before trust.
    if (looked.trusted || !isText(looked)) judged.push(looked)
  }
  return judged
}

/** What counts of a trusted file, also of what it puts in, is what the check was about. */
async function judge(
  source: ConfigSource,
  check: TrustCheck,
  options: LoadConfigOptions,
): Promise<ConfigSource> {
  const kind = trustKind(source.path)
  const path = trustPath(options.worktree, source.path)
  if (kind !== "config")
    return { ...source, trusted: check([{ kind, path, hash: source.hash }]).changed.length === 0 }
  const { readTrustContent } = await import("./trust-content.ts")
  const { hash, read } = await readTrustContent(source, options)
  return { ...source, trusted: check([{ kind, path, hash }]).changed.length === 0, read }
}

function merge(layers: readonly ConfigLayer[], worktree: string): Omit<LoadedConfig, "withTexts"> {
  const nowhere: ObjectNode = { kind: "object", place: { file: "", line: 1, column: 1 }, entries: [] }
  const isOwn = ({ source }: ConfigLayer) => source.scope !== "project"
  const own = layers.filter(isOwn).map((layer) => layer.tree)
  const tree = layers
    .map((layer) => (isOwn(layer) ? layer.tree : withoutToolsGivenBack(layer.tree, own)))
    .reduce(mergeNodes, nowhere)
  checkFormatters(tree)
  const rulesOf = (wanted: (source: ConfigSource) => boolean) =>
    layers.filter(({ source }) => wanted(source)).flatMap(({ rules }) => rules.permission)
  const agentRulesOf = (wanted: (source: ConfigSource) => boolean) =>
    rulesByAgent(layers.filter(({ source }) => wanted(source)))
  return {
    // Each file was checked against the schema, and merging by key keeps what the schema says.
    config: toPlain(tree) as Config,
    permission: {
      user: rulesOf(isOwnFile),
      project: rulesOf(({ scope, trusted }) => scope === "project" && trusted),
      untrusted: rulesOf(({ trusted }) => !trusted),
      environment: rulesOf(isContent),
    },
    agentPermission: agentRulesOf(isOwnFile),
    projectAgentPermission: agentRulesOf(({ scope }) => scope === "project"),
    environmentAgentPermission: agentRulesOf(isContent),
    plugins: layers.flatMap(pluginsOf),
    projectTrusted: layers.every(({ source }) => source.trusted),
    files: layers.map(({ source: { path, kind, scope } }) => ({ path, kind, scope })),
    origin: (keyPath) => originOf(tree, keyPath),
    warnings: layers.flatMap(({ source, warnings }) => (isText(source) ? [] : warnings)),
    notes: layers.flatMap(({ source, warnings }) =>
      isText(source) ? warnings.map((text) => ({ file: source.path, text })) : [],
    ),
    ignored: layers
      .filter((layer) => layer.ignored.length > 0)
      .map(
        ({ source, ignored }) => `${shownName(displayPath(source.path, worktree))}: ${shownNames(ignored)}`,
      ),
  }
}

function isOwnFile({ path, scope }: ConfigSource): boolean {
  return scope !== "project" && path !== contentName
}

function isContent({ path }: ConfigSource): boolean {
  return path === contentName
}

function rulesByAgent(layers: readonly ConfigLayer[]): Record<string, Rule[]> {
  const byAgent: Record<string, Rule[]> = Object.create(null)
  for (const { rules } of layers) {
    for (const [name, own] of rules.agents) byAgent[name] = [...(byAgent[name] ?? []), ...own]
  }
  return byAgent
}

function pluginsOf({ source: { path, scope }, tree }: ConfigLayer): LoadedConfig["plugins"] {
  const value = entryOf(tree, "plugin")?.value
  const entries = value ? (toPlain(value) as NonNullable<Config["plugin"]>) : []
  return entries.map((entry) => {
    if (typeof entry === "string") return { spec: entry, path, scope }
    const [spec, options] = entry
    return { spec, options, path, scope }
  })
}

function originOf(tree: ObjectNode, keyPath: readonly string[]): { file: string; line: number } | undefined {
  const [key, ...rest] = keyPath
  if (key === undefined) return undefined
  const entry = entryOf(tree, key)
  if (entry === undefined) return undefined
  if (rest.length > 0) return entry.value.kind === "object" ? originOf(entry.value, rest) : undefined
  return { file: entry.place.file, line: entry.place.line }
}
