import { errorMessage } from "../util/errors.ts"
import { isCurrent } from "../util/file-stamp.ts"
import { type FollowedFiles, followFiles } from "../util/follow-files.ts"
import { isModuleFile } from "../util/load-module.ts"
import type { PinnedFiles } from "../util/pinned-files.ts"
import { type LoadedToolFile, loadToolFile, type ToolFile, type ToolFileHost } from "./load-tool-file.ts"
import type { RegisteredTool, RegistryProblem } from "./registered-tool.ts"

/** Finds tool files. `find` is called again when a watched path changes. */
export interface ToolFileSource {
  /**
   * Returns absolute paths of files and directories, some of which may be missing. Checking a path costs one `stat`.
   */
  watched(): readonly string[]
  /** Returns the current tool files that may run, and the problems of other files. */
  find(): Promise<FoundToolFiles>
}

/** Tool files that may run, and the problems of other files. */
export interface FoundToolFiles {
  files: readonly ToolFile[]
  problems: readonly RegistryProblem[]
}

/**
 * Custom tools that are reloaded when their files change. Errors in tool files are reported as problems. Reading
 * rejects only if the tool files cannot be listed and no earlier read succeeded.
 */
export type LiveToolFiles = FollowedFiles<LoadedTools>

/** Tools loaded from files. `problems` includes files that failed to load. */
export interface LoadedTools {
  tools: readonly RegisteredTool[]
  problems: readonly RegistryProblem[]
}

/** Opens custom tools without reading any file. Concurrent calls to {@link LiveToolFiles.read} share one read. */
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

  /**
   * Returns the most recently loaded tools, with a problem, if a folder becomes unreadable during a run. Throws the
   * error if no read has succeeded yet.
   */
  function keepLast(error: unknown): LoadedTools {
    if (!found) throw error
    const message = errorMessage(error)
    const last = followed.last()
    // Returns the same object for the same error, because a new object would make the run prepare its tools again.
    if (last.problems[0]?.message === message) return last
    return { tools: last.tools, problems: [{ file: "custom tools", message }] }
  }

  async function load(files: readonly ToolFile[]): Promise<Map<string, Entry>> {
    const begin = (file: ToolFile): Promise<LoadedToolFile> => {
      const known = entries.get(file.path)
      return known && isSame(known, file) ? Promise.resolve(known.result) : loadToolFile(file, host)
    }
    // Starts executables in parallel, because each runs in its own process.
    const described = new Map(
      files.filter(({ path }) => !isModuleFile(path)).map((file) => [file.path, begin(file)]),
    )
    const next = new Map<string, Entry>()
    // Loads modules one after another, so that the time limit applies to each.
    for (const file of files) {
      next.set(file.path, { file, result: await (described.get(file.path) ?? begin(file)) })
    }
    return next
  }

  return followed
}

/** Returns a source for a fixed list of files, or undefined if the list is empty. */
export function namedToolFiles(files: readonly (string | ToolFile)[]): ToolFileSource | undefined {
  if (files.length === 0) return undefined
  const named = files.map((file) => (typeof file === "string" ? { path: file } : file))
  return { watched: () => [], find: async () => ({ files: named, problems: [] }) }
}

interface Entry {
  file: ToolFile
  result: LoadedToolFile
}

/**
 * Returns true if a loaded file has not changed. Always returns false for a failed file, because a missing import may
 * exist now.
 */
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
