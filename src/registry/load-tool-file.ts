import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { basename, dirname, extname } from "node:path"
import { promisify } from "node:util"
import type { ProgramHost } from "../external-tool/program.ts"
import { problemOfTool, readTool } from "../tool/plain-tool.ts"
import { within } from "../util/abort.ts"
import { errorLine, errorMessage, TackleError } from "../util/errors.ts"
import { type FileStamps, stampFiles } from "../util/file-stamp.ts"
import { isRecord } from "../util/json.ts"
import { isModuleFile, loadModule, type ModuleAliases, moduleFiles } from "../util/load-module.ts"
import { missingImport } from "../util/module-graph.ts"
import { isInside, realPath } from "../util/paths.ts"
import type { PinnedFiles } from "../util/pinned-files.ts"
import type { RegisteredTool, RegistryProblem } from "./registered-tool.ts"

/** A file that contains tools. */
export interface ToolFile {
  path: string
  /** Files that may run, with their hashes. See `ModuleGraph`. If undefined, files are not checked. */
  pinned?: PinnedFiles
}

/** Resources for loading tool files. */
export interface ToolFileHost {
  aliases: ModuleAliases
  /** Runs the code of module files, and handles errors that escape from it. Default: calls `work` directly. */
  contain?<T>(work: () => Promise<T>): Promise<T>
  /** Runs executables. If undefined, executables are ignored. */
  programs?: ProgramHost
  /** Maximum time to load a file, in milliseconds. Default: 10,000. */
  limitMs?: number
}

/** The result of loading a file. */
export interface LoadedToolFile {
  tools: RegisteredTool[]
  /** The reason why no tools were loaded, or why a tool is missing. */
  problem?: RegistryProblem
  /** Loaded files with their stamps. More files are added if a module imports them later. */
  files: FileStamps
}

/**
 * Loads the current version of a tool file. The id of the default export is the file name without its extension. The id
 * of a named export is `file_export`. An executable contains one tool, whose id is the file name without its extension.
 * Reports a problem if the file cannot be loaded, exceeds the time limit or exports no tool. Never rejects.
 */
export async function loadToolFile(file: ToolFile, host: ToolFileHost): Promise<LoadedToolFile> {
  const { contain = (work) => work() } = host
  const loaded = await (isModuleFile(file.path)
    ? contain(() => loadModuleTools(file, host))
    : describeProgramFile(file, host))
  const { problem } = loaded
  if (!problem) return loaded
  return { ...loaded, problem: { ...problem, message: withoutOwnPath(problem.message, file.path) } }
}

/**
 * Replaces the path of the file with "it", and locations in the file with line numbers, because the message is shown
 * after the path.
 */
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
  // Remember the files of this attempt, because another engine may load a newer version in the meantime.
  const files = moduleFiles(path)
  const failed = (message: string) => ({ tools: [], problem: { file: path, message }, files })
  try {
    const module = await within(loading, limitMs)
    if (!module) return failed(`it was not loaded within ${limitMs} ms.`)
    const tools = toolsOf(module, path)
    const error = exportError(module, { alone: tools.length === 0 })
    if (tools.length === 0) return failed(error ?? noToolMessage)
    return { tools, files, problem: error === undefined ? undefined : { file: path, message: error } }
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

/** Describes the first export that looks like a tool but is not valid. Returns undefined if no export is invalid. */
function exportError(module: Record<string, unknown>, options: { alone: boolean }): string | undefined {
  for (const [key, value] of Object.entries(module)) {
    const fault = key === "module.exports" ? undefined : problemOfTool(value, options)
    if (fault !== undefined)
      return `${key === "default" ? "its default export" : `its export ${key}`} is not a tool: ${fault}.`
  }
  return undefined
}

function toolsOf(module: Record<string, unknown>, path: string): RegisteredTool[] {
  const name = basename(path, extname(path))
  return Object.entries(module).flatMap(([key, value]) => {
    // Node adds the export `module.exports` to CommonJS modules. This export is the same as the default export.
    if (key === "module.exports") return []
    const tool = readTool(key === "default" ? name : `${name}_${key}`, value)
    return tool ? [{ tool, source: { kind: "file", path } as const }] : []
  })
}

/**
 * Describes why a tool file failed to load, with the location of the missing import, the stack frame or the syntax
 * error.
 */
async function loadFailure(error: unknown, path: string, files: FileStamps): Promise<string> {
  // Tackle's own errors already contain the path.
  if (TackleError.isInstance(error)) return error.message
  const missing = missingImport(error)
  if (missing) return describeMissing(missing)
  const location =
    locationInStack(error, files) ??
    (error instanceof SyntaxError ? await locationOfSyntaxError(path) : undefined)
  return location === undefined ? errorLine(error) : `${errorLine(error)} (${location})`
}

function describeMissing({ specifier, importer }: { specifier: string; importer: string }): string {
  const isPath = /^[./]/.test(specifier)
  const next = isPath
    ? "that file does not exist"
    : "that package is not installed: run `npm install` in the file's directory"
  return `it imports "${specifier}" (${importer}${lineOf(specifier, importer)}), but ${next}.`
}

/** Returns `:` and the number of the first line that quotes the specifier, or an empty string. */
function lineOf(specifier: string, importer: string): string {
  try {
    const lines = readFileSync(importer, "utf8").split("\n")
    const index = lines.findIndex((line) => /["'`]/.test(line) && line.includes(specifier))
    return index === -1 ? "" : `:${index + 1}`
  } catch {
    // The file was deleted in the meantime.
    return ""
  }
}

function locationInStack(error: unknown, files: FileStamps): string | undefined {
  const stack = error instanceof Error ? (error.stack ?? "") : ""
  const frames = [...stack.matchAll(/(?:file:\/\/)?(\/[^\s()?]+?)(?:\?[^:)\s]*)?:(\d+)(?::\d+)?/g)]
  const [, file, line] = frames.find(([, file = ""]) => files.has(file)) ?? []
  return file === undefined ? undefined : `${file}:${line}`
}

/**
 * Returns the location of a syntax error. Runs `node --check`, because Node prints the location but does not add it to
 * the error.
 */
async function locationOfSyntaxError(path: string): Promise<string | undefined> {
  try {
    await promisify(execFile)(process.execPath, ["--check", path], { env: {} })
    return undefined
  } catch (error) {
    const output = isRecord(error) && typeof error.stderr === "string" ? error.stderr : ""
    return /^.+:\d+$/m.exec(output)?.[0]
  }
}
