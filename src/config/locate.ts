import { existsSync, statSync } from "node:fs"
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path"
import { collectTrustItems, type FoundItem, type TrustItem, trustKinds } from "../permission/trust-items.ts"
import { findSkillFiles, skillLookouts } from "../skill/find-skills.ts"
import { isFile } from "../util/directory-entries.ts"
import { isInside, realPath } from "../util/paths.ts"
import { markdownFiles, markdownPlace, markdownPlaces } from "./markdown-place.ts"
import { readSmallFile, type SmallFile } from "./read.ts"

/** Where a run takes place. All paths absolute; `environment` is asked for `XDG_CONFIG_HOME` and `TACKLE_CONFIG`. */
export interface Location {
  directory: string
  worktree: string
  home: string
  environment: Readonly<Record<string, string | undefined>>
}

/** A file that may hold config. `required`: it was named by the person, so that it has to exist. */
export interface ConfigFile {
  path: string
  kind: "tackle" | "opencode" | "claude"
  scope: "user" | "project" | "env"
  required?: true
}

const formats = ["json", "jsonc", "toml"]
const tackleUserNames = formats.flatMap((format) => [`config.${format}`, `tackle.${format}`])
const tackleProjectNames = formats
  .map((format) => `tackle.${format}`)
  .concat(formats.map((format) => `.tackle/config.${format}`))
const opencodeUserNames = ["config.json", "opencode.json", "opencode.jsonc", "config.toml"]
const opencodeProjectNames = [
  "opencode.json",
  "opencode.jsonc",
  ".opencode/opencode.json",
  ".opencode/opencode.jsonc",
  ".opencode/config.toml",
]

/** The file in which a project names MCP servers for Claude Code. */
export const claudeServersName = ".mcp.json"

/** The nearest directory upwards that has `.git` (a directory, or the file of a linked work tree), else `directory`. */
export function findWorktree(directory: string): string {
  const start = resolve(directory)
  for (let current = start; ; ) {
    if (existsSync(join(current, ".git"))) return current
    const parent = dirname(current)
    if (parent === current) return start
    current = parent
  }
}

/**
 * Every file that may hold config, in rising precedence, whether it exists or not; of agents and commands in Markdown
 * those that exist. Of one program's files in one scope these come last.
 */
export function configFiles(location: Location): ConfigFile[] {
  const named = location.environment.TACKLE_CONFIG
  const user = userDirectory(location)
  const files: ConfigFile[] = [
    ...markdownIn(join(location.home, ".claude"), "claude", "user"),
    ...within(join(user, "opencode"), opencodeUserNames, "opencode", "user"),
    ...markdownIn(join(user, "opencode"), "opencode", "user"),
    ...within(join(user, "tackle"), tackleUserNames, "tackle", "user"),
    ...markdownIn(join(user, "tackle"), "tackle", "user"),
    ...(named ? [namedFile(named, location)] : []),
    ...projectFiles(location),
  ]
  // A work tree that holds the user's own config directory does not make those files a project's.
  const own = new Set(files.filter(({ scope }) => scope === "user").map(({ path }) => path))
  return files.filter(({ path, scope }) => scope !== "project" || !own.has(path))
}

/** Files of Tackle's own that hold the config of the project's root, or of the person, whether they exist or not. */
export function ownConfigFiles(location: Location, scope: "project" | "user"): string[] {
  return scope === "user"
    ? tackleUserNames.map((name) => join(userDirectory(location), "tackle", name))
    : tackleProjectNames.map((name) => join(location.worktree, name))
}

/**
 * The directories that may hold tools and the like, in rising precedence: the user's, then `.opencode` and `.tackle`
 * from the work tree's root down to the directory. Only those that exist.
 */
export function configDirectories(location: Location): ConfigDirectory[] {
  return possibleConfigDirectories(location).filter(({ path }) =>
    statSync(path, { throwIfNoEntry: false })?.isDirectory(),
  )
}

export interface ConfigDirectory {
  path: string
  scope: "user" | "project"
  /** The person's own, but in the work tree: whatever works there could have written what it holds. */
  exposed?: true
}

/** The same, whether they exist or not. */
export function possibleConfigDirectories(location: Location): ConfigDirectory[] {
  return [
    ...ownConfigDirectories(location).map((path): ConfigDirectory => {
      const exposed = isInside(realPath(path), realPath(location.worktree))
      return { path, scope: "user", ...(exposed ? { exposed } : {}) }
    }),
    ...projectDirectories(location).map((path) => ({ path, scope: "project" as const })),
  ]
}

/** The person's own, whether they exist or not. */
export function ownConfigDirectories(location: Location): string[] {
  return ["opencode", "tackle"].map((name) => join(userDirectory(location), name))
}

/**
 * Every `SKILL.md` there is, in rising precedence: of the person, then of the project from the work tree's root down; in
 * each of both those of Claude, of `.agents`, of OpenCode, of Tackle.
 */
export function skillFiles(location: Location): string[] {
  return findSkillFiles([...userPlaces(location, skills), ...projectPlaces(location, skills)])
}

/**
 * What to look at for an agent, command or skill that came, went or changed. Absolute paths, there or not: some dozens,
 * and what lies in those folders.
 */
export function definitionPlaces(location: Location): string[] {
  const user = userDirectory(location)
  const directories = [
    join(location.home, ".claude"),
    ...["opencode", "tackle"].map((name) => join(user, name)),
    ...projectLevels(location).flatMap((level) =>
      [".claude", ".opencode", ".tackle"].map((name) => join(level, name)),
    ),
  ]
  return [
    ...directories.flatMap(markdownPlaces),
    ...skillLookouts([...userPlaces(location, skills), ...projectPlaces(location, skills)]),
  ]
}

/**
 * The texts that count without being named: of the person, then of each directory from the work tree's root down. Of one
 * directory only the first of `AGENTS.md` and its kin counts. Absolute paths, the nearest last.
 */
export function instructionFiles(location: Location): string[] {
  const files = [
    ...ownInstructionPlaces(location).flatMap((place) => firstFile(place, ["AGENTS.md", "CLAUDE.md"])),
    ...projectLevels(location).flatMap((level) => firstFile(level, instructionNames)),
  ]
  return [...new Set(files)]
}

/**
 * Finds the same for a file of the project that lies deeper or elsewhere: of each directory from the work tree's root
 * down to it, without those whose texts count anyway and the file itself. Links in the path are not followed. Asked at
 * each read: the file system is not looked at for a file that lies no deeper than the directory.
 */
export function instructionFinder(location: Location): (file: string) => string[] {
  const counted = new Set([...projectLevels(location), ...ownInstructionPlaces(location)])
  return (file) => {
    if (!isInside(file, location.worktree)) return []
    return projectLevels({ ...location, directory: dirname(file) })
      .filter((level) => !counted.has(level))
      .flatMap((level) => firstFile(level, instructionNames))
      .filter((path) => path !== file)
  }
}

/** Where a person keeps the texts that hold for all their projects. */
function ownInstructionPlaces(location: Location): string[] {
  const user = userDirectory(location)
  return [
    join(location.home, ".claude"),
    join(location.home, ".agents"),
    join(user, "opencode"),
    join(user, "tackle"),
  ]
}

/**
 * What a project brings that has to be trusted before it counts: its config, tools, plugins, skills, agents and commands,
 * and the installed packages that its config names as plugins; also the person's own tools, where the work tree holds
 * them. Throws `ConfigError`, where config and plugins are wanted: no other kind takes understanding the config.
 */
export async function projectTrustItems(
  location: Location & { dataDirectory: string },
  wanted: readonly TrustItem["kind"][] = trustKinds,
): Promise<FoundItem[]> {
  const own = configFiles(location).filter(({ path, scope }) => scope === "project" && isFile(path))
  const holding = (kind: TrustItem["kind"]) =>
    own.filter(({ path }) => trustKind(path) === kind).map(({ path }) => path)
  const config: { path: string; hash: string }[] = []
  const packages: { name: string; root: string; provided: readonly string[] }[] = []
  const understood = wanted.includes("config") || wanted.includes("plugin")
  for (const path of understood ? holding("config") : []) {
    config.push({ path, hash: await hashConfig(path, location) })
    const { namedPackages } = await import("./plugin-packages.ts")
    packages.push(...(await namedPackages({ path, scope: "project" }, location)))
  }
  const below = (directories: readonly string[], names: readonly string[]) =>
    directories.flatMap((path) => names.map((name) => join(path, name)))
  const project = projectDirectories(location)
  const exposed = possibleConfigDirectories(location).flatMap((each) => (each.exposed ? [each.path] : []))
  const items = collectTrustItems(location.worktree, {
    config,
    agents: holding("agent"),
    commands: holding("command"),
    toolFolders: wanted.includes("tool") ? below([...exposed, ...project], ["tool", "tools"]) : [],
    pluginFolders: wanted.includes("plugin") ? below(project, ["plugin", "plugins"]) : [],
    packages,
    skillFiles: wanted.includes("skill") ? findSkillFiles(projectPlaces(location, skills)) : [],
  })
  return items.filter(({ kind }) => wanted.includes(kind))
}

/** As what a file of {@link configFiles} is trusted. */
export function trustKind(path: string): TrustItem["kind"] {
  return markdownPlace(path)?.holds ?? "config"
}

/** Empty for what cannot be read: it is never trusted. */
async function hashConfig(path: string, location: Location): Promise<string> {
  // Brings the parsers: only where there is a config.
  const { readTrustContent } = await import("./trust-content.ts")
  const file = readIfPossible(path)
  return file === undefined ? "" : (await readTrustContent({ path, ...file }, location)).hash
}

function readIfPossible(path: string): SmallFile | undefined {
  try {
    return readSmallFile(path)
  } catch {
    // Whoever loads it says what is wrong with it.
    return undefined
  }
}

/** The directory that holds the directories of programs' own settings, `$XDG_CONFIG_HOME`. */
export function userDirectory({ home, environment }: Location): string {
  const configured = environment.XDG_CONFIG_HOME
  return configured && isAbsolute(configured) ? configured : join(home, ".config")
}

function namedFile(name: string, { directory, home }: Location): ConfigFile {
  const path = name.startsWith("~/") ? join(home, name.slice(2)) : resolve(directory, name)
  return { path, kind: "tackle", scope: "env", required: true }
}

function projectFiles(location: Location): ConfigFile[] {
  const levels = projectLevels(location)
  return [
    ...levels.flatMap((level) => within(level, [claudeServersName], "claude", "project")),
    ...levels.flatMap((level) => markdownIn(join(level, ".claude"), "claude", "project")),
    ...levels.flatMap((level) => within(level, opencodeProjectNames, "opencode", "project")),
    ...levels.flatMap((level) => markdownIn(join(level, ".opencode"), "opencode", "project")),
    ...levels.flatMap((level) => within(level, tackleProjectNames, "tackle", "project")),
    ...levels.flatMap((level) => markdownIn(join(level, ".tackle"), "tackle", "project")),
  ]
}

function projectDirectories(location: Location): string[] {
  const levels = projectLevels(location)
  return [".opencode", ".tackle"].flatMap((name) => levels.map((level) => join(level, name)))
}

/** Where files of one kind lie: in folders of config directories, and where other agents keep them. */
interface Kind {
  folders: readonly string[]
  foreign: readonly string[]
}

const skills: Kind = { folders: ["skill", "skills"], foreign: [".claude/skills", ".agents/skills"] }

function userPlaces(location: Location, { folders, foreign }: Kind): string[] {
  const user = userDirectory(location)
  const own = ["opencode", "tackle"].flatMap((name) => folders.map((folder) => join(user, name, folder)))
  return [...foreign.map((folder) => join(location.home, folder)), ...own]
}

/** Without those that are the person's own, where their home is the work tree. */
function projectPlaces(location: Location, kind: Kind): string[] {
  const names = [
    ...kind.foreign,
    ...[".opencode", ".tackle"].flatMap((name) => kind.folders.map((folder) => join(name, folder))),
  ]
  const user = new Set(userPlaces(location, kind))
  const levels = projectLevels(location)
  return names.flatMap((name) => levels.map((level) => join(level, name))).filter((place) => !user.has(place))
}

/** The first that is there is what a directory of the project says. */
const instructionNames = [
  "AGENTS.md",
  ".tackle/AGENTS.md",
  ".agents/AGENTS.md",
  "CLAUDE.md",
  ".claude/CLAUDE.md",
]

function firstFile(directory: string, names: readonly string[]): string[] {
  const found = names.map((name) => join(directory, name)).find(isFile)
  return found === undefined ? [] : [found]
}

/** From the work tree's root down to the directory. */
function projectLevels({ directory, worktree }: Location): string[] {
  if (!isInside(directory, worktree)) return [directory]
  const steps = relative(worktree, directory).split(sep).filter(Boolean)
  return [worktree, ...steps.map((_, index) => join(worktree, ...steps.slice(0, index + 1)))]
}

function within(
  directory: string,
  names: readonly string[],
  kind: ConfigFile["kind"],
  scope: ConfigFile["scope"],
): ConfigFile[] {
  return names.map((name) => ({ path: join(directory, name), kind, scope }))
}

function markdownIn(
  configDirectory: string,
  kind: ConfigFile["kind"],
  scope: ConfigFile["scope"],
): ConfigFile[] {
  return markdownFiles(configDirectory).map((path) => ({ path, kind, scope }))
}
