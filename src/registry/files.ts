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

/** The folders of a config directory that hold custom tools. */
export const toolFolders = ["tool", "tools"] as const

/**
 * Paths of the tool files, modules and executables, below the config directories, in order; a directory that is not
 * there has none.
 */
export function findToolFiles(configDirectories: readonly string[]): string[] {
  return foldersOf(configDirectories).flatMap((folder) => pathsIn(folder).filter(isToolFile))
}

/** Scripts in the same folders that lack the right to be run: each would be a tool. */
export function scriptsWithoutRight(configDirectories: readonly string[]): string[] {
  return foldersOf(configDirectories).flatMap((folder) =>
    pathsIn(folder).filter((path) => !isToolFile(path) && isNamedAsTool(path) && isScript(path)),
  )
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
  if (!isNamedAsTool(path)) return false
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    // Not executable for us, or gone: no tool.
    return false
  }
}

function isNamedAsTool(path: string): boolean {
  return !/(?:^\.|\.d\.m?ts$)/.test(basename(path))
}

/** It names the program that runs it. */
function isScript(path: string): boolean {
  if (!isFile(path)) return false
  let file: number | undefined
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const start = Buffer.alloc(2)
    return readSync(file, start) === 2 && start.toString("latin1") === "#!"
  } catch {
    // It cannot be read either, or is gone: nothing tells that it was meant as a tool.
    return false
  } finally {
    if (file !== undefined) closeSync(file)
  }
}
