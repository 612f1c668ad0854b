import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readdirSync,
  readSync,
  statSync,
} from "node:fs"
import { basename, join } from "node:path"
import { systemCode } from "../util/errors.ts"
import { isFile } from "../util/file-system.ts"
import { isModuleFile } from "../util/load-module.ts"

/** Names of the folders in a config directory that contain custom tools. */
const toolFolders = ["tool", "tools"] as const

/** Returns the paths of the tool files (modules and executables) in the config directories, in order. */
export function findToolFiles(configDirectories: readonly string[]): string[] {
  return foldersOf(configDirectories).flatMap((folder) => pathsIn(folder).filter(isToolFile))
}

/** Returns the scripts in the tool folders that would be tools if they were executable. */
export function nonExecutableScripts(configDirectories: readonly string[]): string[] {
  return foldersOf(configDirectories).flatMap((folder) =>
    pathsIn(folder).filter((path) => !isToolFile(path) && isNamedAsTool(path) && isScript(path)),
  )
}

/**
 * Returns the paths to watch for new, removed and changed tool files: the config directories, their tool folders and
 * the files in those folders. Watching a config directory detects a new tool folder.
 */
export function watchedToolPaths(configDirectories: readonly string[]): string[] {
  const folders = foldersOf(configDirectories).filter((folder) => existsSync(folder))
  return [...configDirectories, ...folders, ...folders.flatMap(pathsIn)]
}

/** Returns true for a file that is loaded as a tool: a module or an executable. `path` must be absolute. */
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

/**
 * Returns true for executables, except hidden files and TypeScript declarations. See `docs/tools-in-any-language.md`.
 */
function isProgram(path: string): boolean {
  if (!isNamedAsTool(path)) return false
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    // The file is not executable or was deleted.
    return false
  }
}

function isNamedAsTool(path: string): boolean {
  return !/(?:^\.|\.d\.m?ts$)/.test(basename(path))
}

/** Returns true for a file that starts with `#!`. */
function isScript(path: string): boolean {
  if (!isFile(path)) return false
  let file: number | undefined
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const start = Buffer.alloc(2)
    return readSync(file, start) === 2 && start.toString("latin1") === "#!"
  } catch {
    // The file is not readable or was deleted.
    return false
  } finally {
    if (file !== undefined) closeSync(file)
  }
}
