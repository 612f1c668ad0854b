import { join, resolve } from "node:path"
import { findSkillFiles, skillWatchPaths } from "../skill/skill.ts"
import { type Location, ownConfigDirectories, projectLevels, userDirectory } from "./location.ts"
import { markdownFiles, watchedMarkdown } from "./markdown-files.ts"

/** A file that may contain config. If `required` is true, the user specified the file, so it must exist. */
export interface ConfigFile {
  path: string
  kind: "tackle" | "opencode" | "claude"
  scope: "user" | "project" | "env"
  required?: true
}

/**
 * Lists all possible config files and the existing Markdown files for agents and commands, in order of increasing
 * precedence. Among the files of one program and scope, Markdown files come last.
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
  // If the worktree contains the user's config directory, the files in it belong to the user, not to the project.
  const own = new Set(files.filter(({ scope }) => scope === "user").map(({ path }) => path))
  return files.filter(({ path, scope }) => scope !== "project" || !own.has(path))
}

/** Lists Tackle's own config files in the project root or the user's directory, whether or not they exist. */
export function ownConfigFiles(location: Location, scope: "project" | "user"): string[] {
  return scope === "user"
    ? tackleUserNames.map((name) => join(userDirectory(location), "tackle", name))
    : tackleProjectNames.map((name) => join(location.worktree, name))
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

/** The file in which a project defines MCP servers for Claude Code. */
export const claudeServersName = ".mcp.json"

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

/**
 * Lists the absolute paths to watch for changes to agents, commands and skills, whether or not they exist. Includes the
 * contents of existing directories. Typically returns a few dozen paths.
 */
export function definitionPaths(location: Location): string[] {
  const directories = [
    join(location.home, ".claude"),
    ...ownConfigDirectories(location),
    ...projectLevels(location).flatMap((level) =>
      [".claude", ".opencode", ".tackle"].map((name) => join(level, name)),
    ),
  ]
  return [...directories.flatMap(watchedMarkdown), ...skillPaths(location)]
}

/**
 * Lists every `SKILL.md` in order of increasing precedence: the user's files, then the project's files. In both, the
 * order is Claude Code, `.agents`, OpenCode, Tackle. For each of these, the project's directories are in order from the
 * worktree root down.
 */
export function skillFiles(location: Location): string[] {
  return findSkillFiles([...userFolders(location), ...projectFolders(location)])
}

/** Lists the project's skill files. */
export function projectSkillFiles(location: Location): string[] {
  return findSkillFiles(projectFolders(location))
}

/** Lists the absolute paths to watch for changed skills, whether or not they exist. */
function skillPaths(location: Location): string[] {
  return skillWatchPaths([...userFolders(location), ...projectFolders(location)])
}

/** Skill directories of other agents. */
const foreignFolders = [".claude/skills", ".agents/skills"]

/** Subdirectories of a config directory that contain skills. */
const folders = ["skill", "skills"]

function userFolders(location: Location): string[] {
  const user = userDirectory(location)
  const own = ["opencode", "tackle"].flatMap((name) => folders.map((folder) => join(user, name, folder)))
  return [...foreignFolders.map((folder) => join(location.home, folder)), ...own]
}

/** Lists the project's skill directories. Excludes the user's own directories, which the worktree may contain. */
function projectFolders(location: Location): string[] {
  const names = [
    ...foreignFolders,
    ...[".opencode", ".tackle"].flatMap((name) => folders.map((folder) => join(name, folder))),
  ]
  const user = new Set(userFolders(location))
  const levels = projectLevels(location)
  return names
    .flatMap((name) => levels.map((level) => join(level, name)))
    .filter((position) => !user.has(position))
}
