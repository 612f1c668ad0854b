import { errorMessage } from "../util/errors.ts"
import { isCurrent } from "../util/file-stamp.ts"
import { type FollowedFiles, followFiles } from "../util/follow-files.ts"
import { isModuleFile } from "../util/load-module.ts"
import type { PinnedFiles } from "../util/pinned-files.ts"
import { type LoadedToolFile, loadToolFile, type ToolFile, type ToolFileHost } from "./load-tool-file.ts"
import type { RegisteredTool, RegistryProblem } from "./registered-tool.ts"

/** Finds tool files. Called again when a watched path changes. */
export interface ToolFileSource {
  /** Absolute paths of files and directories, which may be missing. A check costs one `stat` each. */
  watched(): readonly string[]
  /** Returns the current files that may run, and problems of the others. */
  find(): Promise<FoundToolFiles>
}

/** The tool files that may run, and problems of the others. */
export interface FoundToolFiles {
  files: readonly ToolFile[]
  problems: readonly RegistryProblem[]
}

/** Custom tools that are reloaded when their files change. Errors in a tool file do not reject a read. */
export type LiveToolFiles = FollowedFiles<LoadedTools>

/** The tools of the files. `problems` includes files that failed to load. */
export interface LoadedTools {
  tools: readonly RegisteredTool[]
  problems: readonly RegistryProblem[]
}

/** Reads nothing before {@link LiveToolFiles.read}. Concurrent reads share one. */
export function openToolFiles(source: ToolFileSource, host: ToolFileHost): LiveToolFiles {
  let entries: ReadonlyMap<string, Entry> = new Map()
  /** True after the first successful read. */
  let found = false
  const followed = followFiles<LoadedTools>({
    watched: source.watched,
    besides: () => [...entries.values()].map(({ result }) => result.files),
    read,
    onFailure: keepLast,
    initial: { tools: [], problems: [] },
  })

  async function read(): Promise<LoadedTools> {
    const { files, problems } = await source.find()
    entries = await load(files)
    found = true
    const results = [...entries.values()].map(({ result }) => result)
    return {
      tools: results.flatMap(({ tools }) => tools),
      problems: [...problems, ...results.flatMap(({ problem }) => problem ?? [])],
    }
  }

  /** If a folder becomes unreadable during a run, its tools stay. */
  function keepLast(error: unknown): LoadedTools {
    if (!found) throw error
    const message = errorMessage(error)
    const last = followed.last()
    // The same object for the same error: a new object would prepare the run again.
    if (last.problems[0]?.message === message) return last
    return { tools: last.tools, problems: [{ file: "custom tools", message }] }
  }

  async function load(files: readonly ToolFile[]): Promise<Map<string, Entry>> {
    const begin = (file: ToolFile): Promise<LoadedToolFile> => {
      const known = entries.get(file.path)
      return known && isSame(known, file) ? Promise.resolve(known.result) : loadToolFile(file, host)
    }
    // In parallel: each is a separate process.
    const described = new Map(
      files.filter(({ path }) => !isModuleFile(path)).map((file) => [file.path, begin(file)]),
    )
    const next = new Map<string, Entry>()
    // One after another, so that the time limit applies to each.
    for (const file of files) {
      next.set(file.path, { file, result: await (described.get(file.path) ?? begin(file)) })
    }
    return next
  }

  return followed
}

/** Returns a source for a fixed list of files. Undefined for an empty list. */
export function namedToolFiles(files: readonly (string | ToolFile)[]): ToolFileSource | undefined {
  if (files.length === 0) return undefined
  const named = files.map((file) => (typeof file === "string" ? { path: file } : file))
  return { watched: () => [], find: async () => ({ files: named, problems: [] }) }
}

interface Entry {
  file: ToolFile
  result: LoadedToolFile
}

/** Returns false for a failed file: it is retried, since a missing import may exist now. */
function isSame({ file, result }: Entry, now: ToolFile): boolean {
  return (
    result.problem === undefined &&
    isCurrent(result.files) &&
    [...result.files.keys()].every((path) => hashIn(file.pinned, path) === hashIn(now.pinned, path)) &&
    (file.pinned === undefined) === (now.pinned === undefined)
  )
}

function hashIn(pinned: PinnedFiles | undefined, path: string): string | undefined {
  return pinned?.get(path)
}
