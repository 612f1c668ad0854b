import { basename } from "node:path"
import type { FormatterEntry } from "../formatter/config.ts"
import { formatterProblem } from "../formatter/formatters.ts"
import { type TrustItem, trustPath } from "../permission/trust.ts"
import type { NamedPlugin } from "../plugin/source.ts"
import type { Rule } from "../schema/permission.ts"
import { errorMessage } from "../util/errors.ts"
import { displayPath } from "../util/paths.ts"
import { resolveModelAliases } from "./claude.ts"
import { type ConfigFile, claudeServersName, configFiles } from "./config-files.ts"
import { ConfigError, describeProblem, type Problem } from "./errors.ts"
import type { ForeignSettings } from "./foreign-settings.ts"
import type { Location } from "./location.ts"
import { markdownDefinition } from "./markdown-files.ts"
import {
  type ConfigNode,
  entryOf,
  filterEntries,
  mergeNodes,
  type ObjectNode,
  toPlain,
  without,
} from "./node.ts"
import { readTrustContent, trustKind } from "./project-trust-items.ts"
import { readForeignSettings } from "./read-foreign-settings.ts"
import type { ConfigLayer, ConfigSource } from "./read-layer.ts"
import type { Config } from "./schema.ts"
import { shownName, shownNames, wholeName } from "./shown-name.ts"
import { readSmallFile } from "./small-file.ts"

/** Options for finding config and deciding which files are trusted. */
export interface LoadConfigOptions extends Location {
  /** Whether the project's files are trusted, or a function that checks each file by its content. */
  trusted: boolean | TrustCheck
  /**
   * Receives all problems. If set, `loadConfig` does not throw for problems, and ignores invalid settings and files
   * that cannot be read or parsed. Use it only for commands that do not act on the config, because a deny rule could be
   * lost.
   */
  onProblems?: (problems: readonly Problem[]) => void
}

/** The merged config for a run. Use `origin` to find the source of a value. */
export interface LoadedConfig {
  /** The merged settings as plain values, without `permission`. The objects have no prototype. */
  config: Config
  /**
   * Rules in order of increasing precedence, with their file and, except for Claude Code's rules, their line. `user`
   * includes `TACKLE_CONFIG`. `untrusted` contains the rules of untrusted project files, and `foreign` those in the
   * settings of Claude Code and Codex. Both follow `project` and can only make verdicts stricter. `environment` contains
   * the rules of `TACKLE_CONFIG_CONTENT`, which belong to the user but take precedence over the project.
   */
  permission: { user: Rule[]; project: Rule[]; untrusted: Rule[]; foreign: Rule[]; environment: Rule[] }
  /** One line for each settings file of Claude Code or Codex with settings that Tackle does not use. */
  unusedSettings: readonly string[]
  /** Rules, keyed by agent, from `agent.<name>.permission` and the Markdown agents in the user's files. */
  agentPermission: Record<string, Rule[]>
  /** Rules, keyed by agent, from a trusted project. They follow the user's rules and cannot override a deny rule. */
  projectAgentPermission: Record<string, Rule[]>
  /** Rules, keyed by agent, from `TACKLE_CONFIG_CONTENT`. They follow the project's rules. */
  environmentAgentPermission: Record<string, Rule[]>
  /** The plugins that trusted files list, each with the path of its file. */
  plugins: (NamedPlugin & Pick<ConfigFile, "path" | "scope">)[]
  /** Whether all of the project's config files, except Markdown agents and commands, are trusted. */
  projectTrusted: boolean
  /** Files that were parsed, and `TACKLE_CONFIG_CONTENT` if it is set, in order of increasing precedence. */
  files: Pick<ConfigFile, "path" | "kind" | "scope">[]
  /**
   * Returns the location that defines the effective value at a key path, such as `["provider", "openai", "name"]`, or
   * undefined if no file sets the key. Does not find `permission`, because rules contain their location.
   */
  origin(keyPath: readonly string[]): { file: string; line: number } | undefined
  /** Warnings, one line each. */
  warnings: string[]
  /** The `warnings` about an untrusted project's settings that are ignored until the project is trusted. */
  typos: string[]
  /**
   * Notes about Markdown agents and commands: files that are ignored, and fields that are not used as written.
   */
  notes: { file: string; text: string }[]
  /**
   * Reads the Markdown agents and commands again and keeps all other settings. Throws `ConfigError` for problems, even
   * if `onProblems` is set.
   */
  withMarkdown(trusted: LoadConfigOptions["trusted"]): Promise<LoadedConfig>
  /** An untrusted project's ignored settings, one entry per file, such as `tackle.json: provider, model`. */
  ignored: string[]
}

/**
 * Reads and merges all config files. Objects merge by key. A later list replaces an earlier list, except for
 * `instructions` and `secrets`. Rules are joined in file order. Ignores missing files, except the file in
 * `TACKLE_CONFIG`. Unless `onProblems` is set, throws one `ConfigError` with all problems, such as files that cannot be
 * parsed, or unknown keys in Tackle's own files. In the files of other programs, unknown keys and wrong types cause
 * warnings.
 */
export async function loadConfig(options: LoadConfigOptions): Promise<LoadedConfig> {
  const { sources, problems } = readSources(options)
  const read = await readLayers(await withTrust(sources, options), options)
  const foreign = await readForeignSettings(options)
  const all = [...problems, ...read.problems, ...foreign.problems]
  return fromLayers({ ...read, problems: all, foreign }, options)
}

/** Parsed sources, with notes about the sources that were skipped. */
interface ReadLayers {
  layers: ConfigLayer[]
  notes: LoadedConfig["notes"]
  problems: Problem[]
  foreign: ForeignSettings
}

async function readLayers(
  sources: readonly ConfigSource[],
  options: LoadConfigOptions,
): Promise<Omit<ReadLayers, "foreign">> {
  const read: Omit<ReadLayers, "foreign"> = { layers: [], notes: [], problems: [] }
  if (sources.length === 0) return read
  const { readLayer } = await import("./read-layer.ts")
  for (const source of sources) {
    try {
      const layer = await readLayer(source, options)
      if (isForeignMarkdown(source) && layer.problems.length > 0) throw new ConfigError(layer.problems)
      read.layers.push(layer)
      read.problems.push(...layer.problems)
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      if (!isForeignMarkdown(source)) {
        read.problems.push(...error.problems)
        continue
      }
      // An invalid file in another program's format only affects its own agent or command.
      const blocked = blockedAgent(source, error)
      const outcome = blocked ? "The agent cannot run until the file is corrected." : "The file is ignored."
      read.notes.push({ file: source.path, text: `${error.message} ${outcome}` })
      if (blocked) read.layers.push(blocked)
    }
  }
  return read
}

/** Returns a layer that prevents the use of an agent whose file is invalid, because the file may contain deny rules. */
function blockedAgent(source: ConfigSource, { message }: ConfigError): ConfigLayer | undefined {
  const found = markdownDefinition(source.path)
  if (found?.holds !== "agent") return undefined
  const position = { file: source.path, line: 1, column: 1 }
  const nested = (key: string, value: ConfigNode): ObjectNode => ({
    kind: "object",
    position,
    entries: [{ key, position, value }],
  })
  const problem = { kind: "scalar", position, value: message } as const
  return {
    source,
    tree: nested("agent", nested(found.name, nested("problem", problem))),
    rules: { permission: [], agents: new Map(), examples: [] },
    warnings: [],
    typos: [],
    problems: [],
    ignored: [],
  }
}

/** Merges the layers. Throws `ConfigError` if there are problems, unless `onProblems` is set. */
function fromLayers(read: ReadLayers, options: LoadConfigOptions): LoadedConfig {
  const { layers, notes, problems, foreign } = read
  const { tree: merged, notes: aliases } = resolveModelAliases(mergeTrees(layers, foreign.disabledServers))
  // Does not check formatters if a whole file or a `formatter` section has problems, because it may contain missing
  // formatter settings.
  const isPart = problems.some(({ section }) => section === undefined || section === "formatter")
  const unknown = isPart ? [] : formatterProblems(merged)
  const mistakes = [...problems, ...unknown]
  if (mistakes.length > 0) {
    if (!options.onProblems) throw new ConfigError(mistakes)
    options.onProblems(mistakes)
  }
  const tree = unknown.length === 0 ? merged : without(merged, ["formatter"])
  const loaded = describe({ layers, foreign }, tree, options)
  return {
    ...loaded,
    notes: [
      ...notes,
      ...loaded.notes,
      ...aliases.map((note) => ({ file: note.position.file, text: describeProblem(note) })),
    ],
    async withMarkdown(trusted) {
      // When Markdown files are read again later, problems are thrown instead of passed to the callback.
      const { onProblems: _, ...now } = { ...options, trusted }
      const files = configFiles(options)
      const texts = readFiles(files.filter(isMarkdown))
      const read = await readLayers(await withTrust(texts.sources, now), now)
      const settings = layers.filter(({ source }) => !isMarkdown(source))
      const order = new Map(files.map(({ path }, index) => [path, index]))
      // `TACKLE_CONFIG_CONTENT` is not a file and has the highest precedence.
      const rank = ({ source }: ConfigLayer) => order.get(source.path) ?? files.length
      const all = [...settings, ...read.layers].sort((a, b) => rank(a) - rank(b))
      return fromLayers(
        { layers: all, notes: read.notes, problems: [...texts.problems, ...read.problems], foreign },
        now,
      )
    },
  }
}

/** Merges the layers. Omits the servers in `.mcp.json` that Claude Code's settings disable. */
function mergeTrees(layers: readonly ConfigLayer[], disabledServers: readonly string[]): ObjectNode {
  const nowhere: ObjectNode = { kind: "object", position: { file: "", line: 1, column: 1 }, entries: [] }
  const isOwn = ({ source }: ConfigLayer) => source.scope !== "project"
  const own = layers.filter(isOwn).map((layer) => layer.tree)
  return layers
    .map((layer) => (isOwn(layer) ? layer.tree : withoutRestoredTools(without(layer.tree, ["tenants"]), own)))
    .map((tree, index) =>
      basename(layers[index]?.source.path ?? "") === claudeServersName
        ? disabledServers.reduce((rest, server) => without(rest, ["mcp", server]), tree)
        : tree,
    )
    .reduce(mergeNodes, nowhere)
}

function describe(
  { layers, foreign }: Pick<ReadLayers, "layers" | "foreign">,
  tree: ObjectNode,
  { worktree }: Location,
): Omit<LoadedConfig, "withMarkdown"> {
  const rulesOf = (wanted: (source: ConfigSource) => boolean) =>
    layers.filter(({ source }) => wanted(source)).flatMap(({ rules }) => rules.permission)
  const agentRulesOf = (wanted: (source: ConfigSource) => boolean) =>
    rulesByAgent(layers.filter(({ source }) => wanted(source)))
  return {
    // The cast is safe: each file was checked against the schema, and merging by key keeps the tree valid.
    config: toPlain(tree) as Config,
    permission: {
      user: rulesOf(isOwnFile),
      project: rulesOf(({ scope, trusted }) => scope === "project" && trusted),
      untrusted: rulesOf(({ trusted }) => !trusted),
      foreign: foreign.rules,
      environment: rulesOf(isContent),
    },
    unusedSettings: foreign.unused,
    agentPermission: agentRulesOf(isOwnFile),
    projectAgentPermission: agentRulesOf(({ scope }) => scope === "project"),
    environmentAgentPermission: agentRulesOf(isContent),
    plugins: layers.flatMap(pluginsOf),
    projectTrusted: layers.every(({ source }) => source.trusted),
    files: layers.map(({ source: { path, kind, scope } }) => ({ path, kind, scope })),
    origin: (keyPath) => originOf(tree, keyPath),
    warnings: [
      ...layers.flatMap((layer) => (isMarkdown(layer.source) ? [] : [...layer.warnings, ...typosOf(layer)])),
      ...foreign.warnings.map(describeProblem),
    ],
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

/**
 * Returns a project's items that are not trusted in their current state. Implemented by `Trust.isTrusted` for one
 * worktree.
 */
export type TrustCheck = (items: readonly TrustItem[]) => { changed: readonly TrustItem[] }

/** Config sources, and problems with the files that could not be read. */
export interface Sources {
  sources: ConfigSource[]
  problems: Problem[]
}

/** The variable that contains a config, and the file name that is shown for this config. */
const contentName = "TACKLE_CONFIG_CONTENT"

/** Reads every config text in order of increasing precedence, without checking trust. */
function readSources(location: Location): Sources {
  const { sources, problems } = readFiles(configFiles(location))
  const text = location.environment[contentName]
  if (!text) return { sources, problems }
  const content = { path: contentName, kind: "tackle", scope: "env", text, hash: "", trusted: true } as const
  return { sources: [...sources, content], problems }
}

/** Reads the files that exist. Missing files are skipped unless they are required. */
function readFiles(files: readonly ConfigFile[]): Sources {
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

/** Reads a file. Returns an empty list if it does not exist. */
function readSource({ path, kind, scope, required }: ConfigFile): ConfigSource[] {
  const position = { file: path, line: 1, column: 1 }
  try {
    const file = readSmallFile(path)
    if (file) return [{ path, kind, scope, ...file, trusted: true }]
  } catch (error) {
    // An unreadable file has no hash, so it is reported as not trusted.
    if (isForeignMarkdown({ path, kind })) return []
    throw new ConfigError(
      [{ position, text: `the config file cannot be read: ${errorMessage(error)}.` }],
      error,
    )
  }
  if (!required) return []
  throw new ConfigError([{ position, text: "TACKLE_CONFIG refers to this file, but it does not exist." }])
}

/** Sets the trust of each source and removes the project's untrusted agents and commands. */
async function withTrust(
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
    // Until the project is trusted, Tackle uses no part of its agents and commands.
    if (looked.trusted || !isMarkdown(looked)) judged.push(looked)
  }
  return judged
}

/**
 * Checks whether a source is trusted, including the files that it includes. Returns a source that uses only the
 * checked content.
 */
async function judge(source: ConfigSource, check: TrustCheck, location: Location): Promise<ConfigSource> {
  const kind = trustKind(source.path)
  const path = trustPath(location.worktree, source.path)
  if (kind !== "config")
    return { ...source, trusted: check([{ kind, path, hash: source.hash }]).changed.length === 0 }
  const { hash, read } = await readTrustContent(source, location)
  return { ...source, trusted: check([{ kind, path, hash }]).changed.length === 0, read }
}

/** Returns true for another program's Markdown agent or command. */
function isForeignMarkdown(source: Pick<ConfigSource, "path" | "kind">): boolean {
  return source.kind !== "tackle" && isMarkdown(source)
}

/** Returns true for a Markdown agent or command. */
function isMarkdown({ path }: Pick<ConfigSource, "path">): boolean {
  return trustKind(path) !== "config"
}

/**
 * Prevents a project from restoring tools that the user has removed from an agent: if the user's files list the agent's
 * tools, removes the project's entries with `true`.
 */
function withoutRestoredTools(project: ObjectNode, own: readonly ObjectNode[]): ObjectNode {
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

/** Replaces the object at a key with the result of `change`. */
function mapObject(node: ObjectNode, key: string, change: (value: ObjectNode) => ObjectNode): ObjectNode {
  return filterEntries(node, (entry) =>
    entry.key === key && entry.value.kind === "object" ? { ...entry, value: change(entry.value) } : entry,
  )
}

/**
 * Returns a problem for each unknown formatter that lacks settings. Expects the merged config, because one file may
 * complete a formatter from another file.
 */
function formatterProblems(tree: ObjectNode): Problem[] {
  const section = entryOf(tree, "formatter")?.value
  if (section?.kind !== "object") return []
  return section.entries.flatMap(({ key, position, value }) => {
    const text = formatterProblem(key, toPlain(value) as FormatterEntry)
    return text === undefined ? [] : [{ position, text }]
  })
}
