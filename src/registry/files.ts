import { accessSync, constants, existsSync, readdirSync, statSync } from "node:fs"
import { basename, join } from "node:path"
import { systemCode } from "../util/errors.ts"
import { isModuleFile } from "../util/load-module.ts"

/** The folders of a config directory that hold custom tools. */
export const toolFolders = ["tool", "tools"] as const

/** Paths of the tool files, modules and executables, below the config directories, in order; a directory that is not there has none. */
export function findToolFiles(configDirectories: readonly string[]): string[] {
  return foldersOf(configDirectories).flatMap((folder) => pathsIn(folder).filter(isToolFile))
}

/**
 * What to look at for a tool file that came, went or became one: the config directories, there or not, their tool
 * folders, and everything right in these. A folder that is not there shows in its directory when it comes.
 */
export function toolPlaces(configDirectories: readonly string[]): string[] {
  const folders = foldersOf(configDirectories).filter((folder) => existsSync(folder))
  return [...configDirectories, ...folders, ...folders.flatMap(pathsIn)]
}

/** True for a file in a tool folder that is loaded as a tool: a module, or an executable. Path absolute. */
export function isToolFile(path: string): boolean {
  return isModuleFile(path) || isProgram(path)
}

function foldersOf(configDirectories: readonly string[]): string[] {
  return configDirectories.flatMap((directory) => toolFolders.map((folder) => join(directory, folder)))
}

function pathsIn(directory: string): string[] {
  try {
    return readdirSync(directory)
      .sort()
      .map((name) => join(directory, name))
  } catch (error) {
    if (systemCode(error) === "ENOENT" || systemCode(error) === "ENOTDIR") return []
    throw error
  }
}

/** An executable that is a tool: see `docs/tools-in-any-language.md`. Hidden files and declarations are none. */
function isProgram(path: string): boolean {
  if (/(?:^\.|\.d\.m?ts$)/.test(basename(path))) return false
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    // Not executable for us, or gone: no tool.
    return false
  }
}
