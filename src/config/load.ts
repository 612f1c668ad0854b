import type { FormatterEntry } from "../formatter/config.ts"
import { formatterProblem } from "../formatter/formatters.ts"
import { type TrustItem, trustPath } from "../permission/trust-items.ts"
import type { NamedPlugin } from "../plugin/source.ts"
import type { Rule } from "../schema/permission.ts"
import { errorMessage } from "../util/errors.ts"
import { displayPath } from "../util/paths.ts"
import { type ConfigFile, configFiles } from "./config-files.ts"
import { ConfigError, describeProblem, type Problem } from "./errors.ts"
import type { ConfigLayer, ConfigSource } from "./layer.ts"
import type { Location } from "./location.ts"
import { entryOf, filterEntries, mergeNodes, type ObjectNode, toPlain, without } from "./node.ts"
import { readTrustContent, trustKind } from "./project-trust-items.ts"
import { readSmallFile } from "./read.ts"
import type { Config } from "./schema.ts"
import { shownName, shownNames, wholeName } from "./shown-name.ts"

/** Where to look for config, and which files are trusted. */
export interface LoadConfigOptions extends Location {
  /** Whether the project's files are trusted. A check decides for each file by its content. */
  trusted: boolean | TrustCheck
  /**
   * Receives all problems in file order instead of an error. A section with a problem, or a file that cannot be read,
   * is then ignored. For commands that do not act on the config, since a deny rule could be lost.
   */
  onProblems?: (mistakes: readonly Problem[]) => void
}

/** The config of a run. Only `origin` returns the source of a value. */
export interface LoadedConfig {
  /** Merged plain values without `permission`. Objects have no prototype. */
  config: Config
  /**
   * Rules in rising precedence, with file and line. `user` includes `TACKLE_CONFIG`. `environment` is
   * `TACKLE_CONFIG_CONTENT`, which is the user's but has precedence over the project. `untrusted` contains the rules of
   * untrusted project files: they come after `project` and can only restrict.
   */
  permission: { user: Rule[]; project: Rule[]; untrusted: Rule[]; environment: Rule[] }
  /** Rules of `agent.<name>.permission` and of Markdown agents in the user's files. */
  agentPermission: Record<string, Rule[]>
  /** The same rules of a trusted project. They come after the user's and cannot lift a deny. */
  projectAgentPermission: Record<string, Rule[]>
  /** The same rules of `TACKLE_CONFIG_CONTENT`, which come after the project's. */
  environmentAgentPermission: Record<string, Rule[]>
  /** Plugins named in trusted files, with the file. */
  plugins: (NamedPlugin & Pick<ConfigFile, "path" | "scope">)[]
  /** False if any config file of the project is untrusted. */
  projectTrusted: boolean
  /** The files that were read, in rising precedence. */
  files: Pick<ConfigFile, "path" | "kind" | "scope">[]
  /** Returns where the effective value at a path is defined, such as `["provider", "openai", "name"]`. */
  origin(keyPath: readonly string[]): { file: string; line: number } | undefined
  /** One line each. */
  warnings: string[]
  /** The warnings that are problems in an untrusted project's own Tackle files, which are ignored anyway. */
  typos: string[]
  /** Unused fields of Markdown agents and commands, most of them of other programs, one line each. */
  notes: { file: string; text: string }[]
  /**
   * Reads agents and commands in Markdown again and keeps everything else. Throws `ConfigError` like {@link
   * loadConfig}.
   */
  withMarkdown(trusted: LoadConfigOptions["trusted"]): Promise<LoadedConfig>
  /** Ignored settings of an untrusted project, one entry per file: `tackle.json: provider, model`. */
  ignored: string[]
}

/**
 * Reads and merges all config. Objects merge by key, lists replace each other except `instructions` and `secrets`, and
 * rules are joined in written order. Missing files are normal; without any file, no parser or schema is loaded. Throws
 * one `ConfigError` for all files that cannot be read or parsed, incomplete formatters, and unknown keys and wrong
 * types in Tackle's own files. In OpenCode's files these are warnings.
 */
export async function loadConfig(options: LoadConfigOptions): Promise<LoadedConfig> {
  const { sources, problems } = readSources(options)
  const read = await readLayers(await withTrust(sources, options), options)
  return fromLayers({ ...read, problems: [...problems, ...read.problems] }, options)
}

/** Parsed sources, and notes on the ones that were left out. */
interface ReadLayers {
  layers: ConfigLayer[]
  notes: LoadedConfig["notes"]
  problems: Problem[]
}

async function readLayers(sources: readonly ConfigSource[], options: LoadConfigOptions): Promise<ReadLayers> {
  const read: ReadLayers = { layers: [], notes: [], problems: [] }
  if (sources.length === 0) return read
  const { readLayer } = await import("./layer.ts")
  for (const source of sources) {
    try {
      const layer = await readLayer(source, options)
      read.layers.push(layer)
      read.problems.push(...layer.problems)
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      // An invalid file in another program's own format stops nothing.
      if (isForeignMarkdown(source))
        read.notes.push({ file: source.path, text: `${error.message} The file is ignored.` })
      else read.problems.push(...error.problems)
    }
  }
  return read
}

/** Throws `ConfigError` for the problems, unless `onProblems` is set. */
function fromLayers({ layers, notes, problems }: ReadLayers, options: LoadConfigOptions): LoadedConfig {
  const merged = mergeTrees(layers)
  // The missing part could be in a file or section with a problem.
  const isPart = problems.some(({ section }) => section === undefined || section === "formatter")
  const unknown = isPart ? [] : formatterProblems(merged)
  const mistakes = [...problems, ...unknown]
  if (mistakes.length > 0) {
    if (!options.onProblems) throw new ConfigError(mistakes)
    options.onProblems(mistakes)
  }
  const tree = unknown.length === 0 ? merged : without(merged, ["formatter"])
  const loaded = describe(layers, tree, options.worktree)
  return {
    ...loaded,
    notes: [...notes, ...loaded.notes],
    async withMarkdown(trusted) {
      // A later call reports problems by throwing.
      const { onProblems: _, ...now } = { ...options, trusted }
      const files = configFiles(options)
      const texts = readFiles(files.filter(isMarkdown))
      const read = await readLayers(await withTrust(texts.sources, now), now)
      const settings = layers.filter(({ source }) => !isMarkdown(source))
      const order = new Map(files.map(({ path }, index) => [path, index]))
      // The variable is not a file and has the highest precedence.
      const rank = ({ source }: ConfigLayer) => order.get(source.path) ?? files.length
      const all = [...settings, ...read.layers].sort((a, b) => rank(a) - rank(b))
      return fromLayers(
        { layers: all, notes: read.notes, problems: [...texts.problems, ...read.problems] },
        now,
      )
    },
  }
}

function mergeTrees(layers: readonly ConfigLayer[]): ObjectNode {
  const nowhere: ObjectNode = { kind: "object", position: { file: "", line: 1, column: 1 }, entries: [] }
  const isOwn = ({ source }: ConfigLayer) => source.scope !== "project"
  const own = layers.filter(isOwn).map((layer) => layer.tree)
  return layers
    .map((layer) => (isOwn(layer) ? layer.tree : withoutRestoredTools(layer.tree, own)))
    .reduce(mergeNodes, nowhere)
}

function describe(
  layers: readonly ConfigLayer[],
  tree: ObjectNode,
  worktree: string,
): Omit<LoadedConfig, "withMarkdown"> {
  const rulesOf = (wanted: (source: ConfigSource) => boolean) =>
    layers.filter(({ source }) => wanted(source)).flatMap(({ rules }) => rules.permission)
  const agentRulesOf = (wanted: (source: ConfigSource) => boolean) =>
    rulesByAgent(layers.filter(({ source }) => wanted(source)))
  return {
    // Each file was checked against the schema, and merging by key keeps it valid.
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
    warnings: layers.flatMap((layer) =>
      isMarkdown(layer.source) ? [] : [...layer.warnings, ...typosOf(layer)],
    ),
    typos: layers.flatMap(typosOf),
    notes: layers.flatMap(({ source, warnings }) =>
      isMarkdown(source) ? warnings.map((text) => ({ file: source.path, text })) : [],
    ),
    ignored: layers
      .filter((layer) => layer.ignored.length > 0)
      .map(
        ({ source, ignored }) => `${shownName(displayPath(source.path, worktree))}: ${shownNames(ignored)}`,
      ),
  }
}

function typosOf({ typos }: ConfigLayer): string[] {
  return typos.map((typo) => wholeName(describeProblem(typo)))
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
  return { file: entry.position.file, line: entry.position.line }
}

/** Returns which items of a project are not trusted in their current form: `Trust.isTrusted` for its worktree. */
export type TrustCheck = (items: readonly TrustItem[]) => { changed: readonly TrustItem[] }

/** The sources, and the files that could not be read. */
export interface Sources {
  sources: ConfigSource[]
  problems: Problem[]
}

/** Stands for the file name if the config comes from this variable. */
export const contentName = "TACKLE_CONFIG_CONTENT"

/** Reads every config text in rising precedence, without checking trust. */
export function readSources(location: Location): Sources {
  const { sources, problems } = readFiles(configFiles(location))
  const text = location.environment[contentName]
  if (!text) return { sources, problems }
  const content = { path: contentName, kind: "tackle", scope: "env", text, hash: "", trusted: true } as const
  return { sources: [...sources, content], problems }
}

/** Reads the files that exist. */
export function readFiles(files: readonly ConfigFile[]): Sources {
  const found: Sources = { sources: [], problems: [] }
  for (const file of files) {
    try {
      found.sources.push(...readSource(file))
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      found.problems.push(...error.problems)
    }
  }
  return found
}

/** Returns an empty list if the file does not exist. */
function readSource({ path, kind, scope, required }: ConfigFile): ConfigSource[] {
  const position = { file: path, line: 1, column: 1 }
  try {
    const file = readSmallFile(path)
    if (file) return [{ path, kind, scope, ...file, trusted: true }]
  } catch (error) {
    // It cannot be pinned either, so it is reported as not trusted.
    if (isForeignMarkdown({ path, kind })) return []
    throw new ConfigError(
      [{ position, text: `the config file cannot be read: ${errorMessage(error)}.` }],
      error,
    )
  }
  if (!required) return []
  throw new ConfigError([{ position, text: "TACKLE_CONFIG names this file, but it does not exist." }])
}

/** Sets the trust of each source, and removes untrusted agents and commands of the project. */
export async function withTrust(
  sources: ConfigSource[],
  options: Location & { trusted: boolean | TrustCheck },
): Promise<ConfigSource[]> {
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
    // No part of an agent or command is used before trust.
    if (looked.trusted || !isMarkdown(looked)) judged.push(looked)
  }
  return judged
}

/** Checks trust by content, including included files. Only the checked content is used afterwards. */
async function judge(source: ConfigSource, check: TrustCheck, location: Location): Promise<ConfigSource> {
  const kind = trustKind(source.path)
  const path = trustPath(location.worktree, source.path)
  if (kind !== "config")
    return { ...source, trusted: check([{ kind, path, hash: source.hash }]).changed.length === 0 }
  const { hash, read } = await readTrustContent(source, location)
  return { ...source, trusted: check([{ kind, path, hash }]).changed.length === 0, read }
}

/** Returns whether it is a Markdown agent or command of another program. */
export function isForeignMarkdown(source: Pick<ConfigSource, "path" | "kind">): boolean {
  return source.kind !== "tackle" && isMarkdown(source)
}

/** Returns whether it is a Markdown agent or command. */
export function isMarkdown({ path }: Pick<ConfigSource, "path">): boolean {
  return trustKind(path) !== "config"
}

/**
 * Removes from a project's tree each tool that it gives back to an agent: if the user's files list tools of the agent,
 * `true` in the project is ignored.
 */
export function withoutRestoredTools(project: ObjectNode, own: readonly ObjectNode[]): ObjectNode {
  return mapObject(project, "agent", (agents) =>
    filterEntries(agents, (agent) => {
      const isListed = own.some((tree) => toolsOf(tree, agent.key))
      if (!isListed || agent.value.kind !== "object") return agent
      const value = mapObject(agent.value, "tools", (tools) =>
        filterEntries(tools, (tool) =>
          tool.value.kind === "scalar" && tool.value.value === true ? undefined : tool,
        ),
      )
      return { ...agent, value }
    }),
  )
}

function toolsOf(tree: ObjectNode, name: string) {
  return entryOf(entryOf(entryOf(tree, "agent")?.value, name)?.value, "tools")
}

/** Replaces the object at the key. */
function mapObject(node: ObjectNode, key: string, change: (value: ObjectNode) => ObjectNode): ObjectNode {
  return filterEntries(node, (entry) =>
    entry.key === key && entry.value.kind === "object" ? { ...entry, value: change(entry.value) } : entry,
  )
}

/** Returns unknown formatters that lack settings. Checks the merged config, since one file may complete another. */
export function formatterProblems(tree: ObjectNode): Problem[] {
  const section = entryOf(tree, "formatter")?.value
  if (section?.kind !== "object") return []
  return section.entries.flatMap(({ key, position, value }) => {
    const text = formatterProblem(key, toPlain(value) as FormatterEntry)
    return text === undefined ? [] : [{ position, text }]
  })
}
