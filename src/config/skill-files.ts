import { join } from "node:path"
import { findSkillFiles, skillWatchPaths } from "../skill/skill.ts"
import { type Location, projectLevels, userDirectory } from "./location.ts"

/**
 * Lists every `SKILL.md` in order of increasing precedence: the user's, then the project's from the worktree root down.
 * The order within each level is Claude Code, `.agents`, OpenCode, Tackle.
 */
export function skillFiles(location: Location): string[] {
  return findSkillFiles([...userFolders(location), ...projectFolders(location)])
}

/** Lists the skill files of the project. */
export function projectSkillFiles(location: Location): string[] {
  return findSkillFiles(projectFolders(location))
}

/** Lists the absolute paths to watch for changed skills, whether or not they exist. */
export function skillPaths(location: Location): string[] {
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

/** Lists the skill directories of the project. Excludes the user's own if the home directory is the worktree. */
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
