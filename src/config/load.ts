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

/** Where the config is looked for, and what of it counts. */
export interface LoadConfigOptions extends Location {
  /** Whether the project's own files count in full. A check decides for each file by its content. */
  trusted: boolean | TrustCheck
  /**
   * Is told all that is wrong, in the order of the files, instead of the throw. What stands under the key at the top of a
   * file where something is wrong does not count then, nor does anything of a file that cannot be read. For those who need
   * none of it: a rule that was meant to deny could be lost.
   */
  onProblems?: (mistakes: readonly Problem[]) => void
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
  /** Those of the warnings that are mistakes in Tackle's own files, where an untrusted project's do not count anyway. */
  typos: string[]
  /** What is not used of agents and commands in Markdown, most of them other programs', one line each. */
  notes: { file: string; text: string }[]
  /**
   * The same with the agents and commands in Markdown as they are now, and all else as it was read. Throws `ConfigError`
   * like {@link loadConfig}.
   */
  withMarkdown(trusted: LoadConfigOptions["trusted"]): Promise<LoadedConfig>
  /** What an untrusted project said in vain, one entry a file: `tackle.json: provider, model`. To be shown as one line. */
  ignored: string[]
}

/**
 * Reads and merges every config there is. Objects merge by key, lists replace each other except `instructions` and
 * `secrets`, rules line up in written order. Missing files are normal, and with none at all no parser or schema is loaded.
 * Throws one `ConfigError` for all of these: files that cannot be read or understood, formatters that nobody knows, and
 * unknown keys and wrong types in Tackle's own files; in OpenCode's these are warnings.
 */
export async function loadConfig(options: LoadConfigOptions): Promise<LoadedConfig> {
  const { sources, problems } = readSources(options)
  const read = await readLayers(await withTrust(sources, options), options)
  return fromLayers({ ...read, problems: [...problems, ...read.problems] }, options)
}

/** Sources, understood, and what is said of those that were left out. */
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
      // A file that somebody wrote for another program in its own format stops nothing here.
      if (isForeignMarkdown(source))
        read.notes.push({ file: source.path, text: `${error.message} The file is left out.` })
      else read.problems.push(...error.problems)
    }
  }
  return read
}

/** Throws `ConfigError` for the problems, unless somebody wants to be told of them. */
function fromLayers({ layers, notes, problems }: ReadLayers, options: LoadConfigOptions): LoadedConfig {
  const merged = mergeTrees(layers)
  // What another file adds may be missing.
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
      // Whoever was told of mistakes then is not who asks now.
      const { onProblems: _, ...now } = { ...options, trusted }
      const files = configFiles(options)
      const texts = readFiles(files.filter(isMarkdown))
      const read = await readLayers(await withTrust(texts.sources, now), now)
      const settings = layers.filter(({ source }) => !isMarkdown(source))
      const order = new Map(files.map(({ path }, index) => [path, index]))
      // What came in a variable is no file, and stands over all.
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

/** Tells which of a project's items the person has not trusted as they are now: `Trust.isTrusted` for its work tree. */
export type TrustCheck = (items: readonly TrustItem[]) => { changed: readonly TrustItem[] }

/** What was found, and what could not be read of it. */
export interface Sources {
  sources: ConfigSource[]
  problems: Problem[]
}

/** The name that stands for a file where the config came in a variable. */
export const contentName = "TACKLE_CONFIG_CONTENT"

/** Every text that holds config, in rising precedence, before anyone looked into it. None is judged yet. */
export function readSources(location: Location): Sources {
  const { sources, problems } = readFiles(configFiles(location))
  const text = location.environment[contentName]
  if (!text) return { sources, problems }
  const content = { path: contentName, kind: "tackle", scope: "env", text, hash: "", trusted: true } as const
  return { sources: [...sources, content], problems }
}

/** Those of the files that exist. */
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

/** None where there is no such file. */
function readSource({ path, kind, scope, required }: ConfigFile): ConfigSource[] {
  const position = { file: path, line: 1, column: 1 }
  try {
    const file = readSmallFile(path)
    if (file) return [{ path, kind, scope, ...file, trusted: true }]
  } catch (error) {
    // It cannot be pinned either, so that it is told as not trusted.
    if (isForeignMarkdown({ path, kind })) return []
    throw new ConfigError(
      [{ position, text: `the config file cannot be read: ${errorMessage(error)}.` }],
      error,
    )
  }
  if (!required) return []
  throw new ConfigError([{ position, text: "TACKLE_CONFIG names this file, and there is none." }])
}

/** The sources with what the person trusts of them. Agents and commands of a project that are not trusted are left out. */
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
    // An agent or command has no part that would count before trust.
    if (looked.trusted || !isMarkdown(looked)) judged.push(looked)
  }
  return judged
}

/** What counts of a trusted file, also of what it puts in, is what the check was about. */
async function judge(source: ConfigSource, check: TrustCheck, location: Location): Promise<ConfigSource> {
  const kind = trustKind(source.path)
  const path = trustPath(location.worktree, source.path)
  if (kind !== "config")
    return { ...source, trusted: check([{ kind, path, hash: source.hash }]).changed.length === 0 }
  const { hash, read } = await readTrustContent(source, location)
  return { ...source, trusted: check([{ kind, path, hash }]).changed.length === 0, read }
}

/** An agent or command in Markdown that was written for another program. */
export function isForeignMarkdown(source: Pick<ConfigSource, "path" | "kind">): boolean {
  return source.kind !== "tackle" && isMarkdown(source)
}

/** An agent or command in Markdown. */
export function isMarkdown({ path }: Pick<ConfigSource, "path">): boolean {
  return trustKind(path) !== "config"
}

/**
 * The tree of a project's file, in which no agent gets a tool back that the person's own files may have taken from it:
 * where those list tools of an agent, the project's `true` for one does not count.
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

/** The object with the object under the key replaced. */
function mapObject(node: ObjectNode, key: string, change: (value: ObjectNode) => ObjectNode): ObjectNode {
  return filterEntries(node, (entry) =>
    entry.key === key && entry.value.kind === "object" ? { ...entry, value: change(entry.value) } : entry,
  )
}

/**
 * The formatters that are not known and say too little. Asked of the whole config, since one file may add to what another
 * says.
 */
export function formatterProblems(tree: ObjectNode): Problem[] {
  const section = entryOf(tree, "formatter")?.value
  if (section?.kind !== "object") return []
  return section.entries.flatMap(({ key, position, value }) => {
    const text = formatterProblem(key, toPlain(value) as FormatterEntry)
    return text === undefined ? [] : [{ position, text }]
  })
}
