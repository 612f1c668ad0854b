import { join } from "node:path"
import { findSkillFiles, skillLookouts } from "../skill/find-skills.ts"
import { type Location, projectLevels, userDirectory } from "./location.ts"

/**
 * Every `SKILL.md` there is, in rising precedence: of the person, then of the project from the work tree's root down; in
 * each of both those of Claude, of `.agents`, of OpenCode, of Tackle.
 */
export function skillFiles(location: Location): string[] {
  return findSkillFiles([...userFolders(location), ...projectFolders(location)])
}

/** Those of the project alone. */
export function projectSkillFiles(location: Location): string[] {
  return findSkillFiles(projectFolders(location))
}

/** What to look at for a skill that came, went or changed. Absolute paths, there or not. */
export function skillPaths(location: Location): string[] {
  return skillLookouts([...userFolders(location), ...projectFolders(location)])
}

/** Where other agents keep them. */
const foreignFolders = [".claude/skills", ".agents/skills"]

/** Where they lie in a config directory. */
const folders = ["skill", "skills"]

function userFolders(location: Location): string[] {
  const user = userDirectory(location)
  const own = ["opencode", "tackle"].flatMap((name) => folders.map((folder) => join(user, name, folder)))
  return [...foreignFolders.map((folder) => join(location.home, folder)), ...own]
}

/** Without those that are the person's own, where their home is the work tree. */
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
