import { execFile } from "node:child_process"
import { accessSync, constants, readdirSync, statSync } from "node:fs"
import { basename, extname, join } from "node:path"
import { promisify } from "node:util"
import type { ProgramHost } from "../external-tool/program.ts"
import { readTool } from "../tool/plain-tool.ts"
import { isTool } from "../tool/tool.ts"
import { within } from "../util/abort.ts"
import { errorMessage, systemCode, TackleError } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"
import { isModuleFile, loadModule, type ModuleAliases } from "../util/load-module.ts"
import type { PinnedFiles } from "../util/module-graph.ts"
import type { RegisteredTool, RegistryProblem } from "./registry.ts"

/** The folders of a config directory that hold custom tools. */
export const toolFolders = ["tool", "tools"] as const

/** Paths of the tool files, modules and executables, below the config directories, in order; a directory that is not there has none. */
export function findToolFiles(configDirectories: readonly string[]): string[] {
  return configDirectories.flatMap((directory) =>
    toolFolders.flatMap((folder) => toolFilesIn(join(directory, folder))),
  )
}

/** A file with tools. */
export interface ToolFile {
  path: string
  /** All that may run of it: see `ModuleGraph`. Absent: it is run as it is. */
  pinned?: PinnedFiles
}

/** What tool files are loaded with. */
export interface ToolFileHost {
  aliases: ModuleAliases
  /** Absent: executables are left out. */
  programs?: ProgramHost
  /** How long a file may take. Default: 10 s. */
  limitMs?: number
}

/**
 * Loads custom tools. The default export gets the file's name as its id, a named export `file_export`; an executable is
 * one tool with the file's name. A file that cannot be loaded or is not done with it within the limit, and an export
 * that is no tool in a file without any, is a problem; the others go on.
 */
export async function loadToolFiles(
  files: readonly (string | ToolFile)[],
  { aliases, programs, limitMs = 10_000 }: ToolFileHost,
): Promise<{ tools: RegisteredTool[]; problems: RegistryProblem[] }> {
  const tools: RegisteredTool[] = []
  const problems: RegistryProblem[] = []
  // Side by side: each is a process of its own that is waited for.
  const described = new Map(
    files.map(toToolFile).flatMap((file) => {
      if (isModuleFile(file.path) || !programs) return []
      return [[file.path, describe(file, programs, limitMs)] as const]
    }),
  )
  for (const { path, ...content } of files.map(toToolFile)) {
    const program = await described.get(path)
    if (program?.tool) tools.push(program.tool)
    if (program?.problem) problems.push(program.problem)
    if (!isModuleFile(path)) continue
    try {
      const version = String(statSync(path).mtimeMs)
      const module = await within(loadModule(path, { aliases, version, ...content }), limitMs)
      const found = module && toolsOf(module, path)
      tools.push(...(found ?? []))
      if (!found) problems.push({ file: path, message: `it was not loaded within ${limitMs} ms.` })
      else if (found.length === 0) problems.push({ file: path, message: noToolMessage })
    } catch (error) {
      problems.push({ file: path, message: await loadFailure(error, path) })
    }
  }
  return { tools, problems }
}

const noToolMessage =
  'it exports no tool. Export one with `export default Tool.define("name", { description, parameters, execute })` from "tackle/tool".'

/** Never rejects. */
async function describe(
  { path, ...content }: ToolFile,
  host: ProgramHost,
  limitMs: number,
): Promise<{ tool?: RegisteredTool; problem?: RegistryProblem }> {
  try {
    const { externalTool } = await import("../external-tool/tool.ts")
    const tool = await externalTool({ name: basename(path, extname(path)), path, ...content, host }, limitMs)
    return { tool: { tool, source: { kind: "file", path } } }
  } catch (error) {
    return { problem: { file: path, message: errorMessage(error) } }
  }
}

function toToolFile(file: string | ToolFile): ToolFile {
  return typeof file === "string" ? { path: file } : file
}

function toolFilesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
      .sort()
      .map((name) => join(directory, name))
      .filter(isToolFile)
  } catch (error) {
    if (systemCode(error) === "ENOENT" || systemCode(error) === "ENOTDIR") return []
    throw error
  }
}

/** True for a file in a tool folder that is loaded as a tool: a module, or an executable. Path absolute. */
export function isToolFile(path: string): boolean {
  return isModuleFile(path) || isProgram(path)
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

function toolsOf(module: Record<string, unknown>, path: string): RegisteredTool[] {
  const name = basename(path, extname(path))
  return Object.entries(module).flatMap(([key, value]) => {
    // What Node adds to a CommonJS module: the default export once more.
    if (key === "module.exports") return []
    const tool = readTool(key === "default" ? name : `${name}_${key}`, value)
    if (!tool) return []
    const ownName = isTool(value) && value.id !== tool.id ? value.id : undefined
    return [{ tool, source: { kind: "file", path } as const, ownName }]
  })
}

/** The message with the place in the user's file: the first that the stack names, or where its syntax is wrong. */
async function loadFailure(error: unknown, path: string): Promise<string> {
  // Ours names the file itself, and its stack is ours.
  if (TackleError.isInstance(error)) return error.message
  const place =
    placeInStack(error) ?? (error instanceof SyntaxError ? await placeOfSyntaxError(path) : undefined)
  return place === undefined ? errorMessage(error) : `${errorMessage(error)} (${place})`
}

function placeInStack(error: unknown): string | undefined {
  const stack = error instanceof Error ? (error.stack ?? "") : ""
  const found = /file:\/\/(\S+?)(?:\?[^:)\s]*)?:(\d+)(?::\d+)?/.exec(stack)
  return found ? `${found[1]}:${found[2]}` : undefined
}

/** Node tells the place of a syntax error to people alone: it is asked once more, in a process that runs nothing. */
async function placeOfSyntaxError(path: string): Promise<string | undefined> {
  try {
    await promisify(execFile)(process.execPath, ["--check", path], { env: {} })
    return undefined
  } catch (error) {
    const told = isRecord(error) && typeof error.stderr === "string" ? error.stderr : ""
    return /^.+:\d+$/m.exec(told)?.[0]
  }
}
