import { basename, dirname, extname } from "node:path"
import type { ProgramHost } from "../external-tool/program.ts"
import { problemOfTool, readTool } from "../tool/plain-tool.ts"
import { isTool } from "../tool/tool.ts"
import { within } from "../util/abort.ts"
import { errorMessage } from "../util/errors.ts"
import { type FileStamps, stampFiles } from "../util/file-stamp.ts"
import { isModuleFile, loadModule, type ModuleAliases, moduleFiles } from "../util/load-module.ts"
import { isInside, realPath } from "../util/paths.ts"
import type { PinnedFiles } from "../util/pinned-files.ts"
import { loadFailure } from "./load-failure.ts"
import type { RegistryProblem } from "./problems.ts"
import type { RegisteredTool } from "./registered-tool.ts"

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
  /** How long a file may take, in milliseconds. Default: 10 s. */
  limitMs?: number
}

/** What became of a file. */
export interface LoadedToolFile {
  tools: RegisteredTool[]
  /** Why there are none, or one of them is not there. */
  problem?: RegistryProblem
  /** All that it was made of, as it was then. Grows with what a module imports later. */
  files: FileStamps
}

/**
 * Loads a custom tool as it is now. The default export gets the file's name as its id, a named export `file_export`; an
 * executable is one tool with the file's name. A file that cannot be loaded or is not done with it within the limit, and
 * one that exports no tool, has a problem. Never rejects.
 */
export async function loadToolFile(file: ToolFile, host: ToolFileHost): Promise<LoadedToolFile> {
  const loaded = await (isModuleFile(file.path)
    ? loadModuleTools(file, host)
    : describeProgramFile(file, host))
  const { problem } = loaded
  if (!problem) return loaded
  return { ...loaded, problem: { ...problem, message: withoutOwnPath(problem.message, file.path) } }
}

/** The message is shown behind the file's path, which it does not say again: a place there is a line, and the file is "it". */
function withoutOwnPath(message: string, path: string): string {
  const names = [...new Set([path, realPath(path)])]
    .map((name) => name.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"))
    .join("|")
  return message
    .replaceAll(new RegExp(`(?:${names}):(\\d+)`, "g"), "line $1")
    .replace(new RegExp(`^(?:${names})(?= )`), "it")
}

const defaultLimitMs = 10_000

async function loadModuleTools(
  { path, ...content }: ToolFile,
  { aliases, limitMs = defaultLimitMs }: ToolFileHost,
): Promise<LoadedToolFile> {
  const loading = loadModule(path, { aliases, ...content })
  // Of this very attempt: another engine may load a later one.
  const files = moduleFiles(path)
  const failed = (message: string) => ({ tools: [], problem: { file: path, message }, files })
  try {
    const module = await within(loading, limitMs)
    if (!module) return failed(`it was not loaded within ${limitMs} ms.`)
    const tools = toolsOf(module, path)
    const fault = faultOf(module, { alone: tools.length === 0 })
    if (tools.length === 0) return failed(fault ?? noToolMessage)
    return { tools, files, ...(fault === undefined ? {} : { problem: { file: path, message: fault } }) }
  } catch (error) {
    return failed(await loadFailure(error, path, files))
  }
}

const noToolMessage =
  'it exports no tool. Export one with `export default Tool.define("name", { description, parameters, execute })` from "tackle/tool".'

async function describeProgramFile(
  { path, ...content }: ToolFile,
  { programs, limitMs = defaultLimitMs }: ToolFileHost,
): Promise<LoadedToolFile> {
  const below = [...(content.pinned?.keys() ?? [])].filter((file) => isInside(file, dirname(path)))
  const files = stampFiles([path, ...below])
  if (!programs) return { tools: [], files }
  try {
    const { externalTool } = await import("../external-tool/tool.ts")
    const name = basename(path, extname(path))
    const tool = await externalTool({ name, path, ...content, host: programs }, limitMs)
    return { tools: [{ tool, source: { kind: "file", path } }], files }
  } catch (error) {
    return { tools: [], problem: { file: path, message: errorMessage(error) }, files }
  }
}

/** Of the first export that is meant as a tool and is none. */
function faultOf(module: Record<string, unknown>, options: { alone: boolean }): string | undefined {
  for (const [key, value] of Object.entries(module)) {
    const fault = key === "module.exports" ? undefined : problemOfTool(value, options)
    if (fault !== undefined)
      return `${key === "default" ? "its default export" : `its export ${key}`} is no tool: ${fault}.`
  }
  return undefined
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
