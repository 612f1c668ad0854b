import { errorMessage } from "../util/errors.ts"
import { type FileStamps, isCurrent, stampFiles } from "../util/file-stamp.ts"
import { isModuleFile } from "../util/load-module.ts"
import type { PinnedFiles } from "../util/pinned-file.ts"
import { type LoadedToolFile, loadToolFile, type ToolFile, type ToolFileHost } from "./load-tool-file.ts"
import type { RegistryProblem } from "./problems.ts"
import type { RegisteredTool } from "./registered-tool.ts"

/** Where tool files come from, asked again whenever something there has changed. */
export interface ToolFileSource {
  /** Absolute paths of files and directories, there or not, whose change makes it worth looking again: one `stat` each. */
  watched(): readonly string[]
  /** The files that may run, as they are now, and what is to be said of those that may not. */
  find(): Promise<FoundToolFiles>
}

export interface FoundToolFiles {
  files: readonly ToolFile[]
  problems: readonly RegistryProblem[]
}

/** Custom tools that follow their files. */
export interface LiveToolFiles {
  /** True where something is not what it was when the tools were read. A `stat` for each file and folder, nothing else. */
  changed(): boolean
  /** The same between the steps of a run, where it is not to cost: looks again only 200 ms after it was looked at last. */
  changedLately(): boolean
  /** The tools as the files are now. Only what changed is loaded again. Does not reject for what a file does. */
  read(): Promise<LoadedTools>
  /** What was read last. Nothing before that. */
  last(): LoadedTools
}

export interface LoadedTools {
  tools: readonly RegisteredTool[]
  problems: readonly RegistryProblem[]
}

/** How long what was seen of the files stands between steps. A model takes longer to answer. */
const restMs = 200

/** Nothing is read before {@link LiveToolFiles.read}. Readers at the same time share one reading. */
export function openToolFiles(source: ToolFileSource, host: ToolFileHost): LiveToolFiles {
  let places: FileStamps | undefined
  let entries: ReadonlyMap<string, Entry> = new Map()
  let loaded: LoadedTools = { tools: [], problems: [] }
  let reading: Promise<LoadedTools> | undefined
  let lookedAt = 0
  /** Whether the files were found at least once. */
  let found = false

  function changed(): boolean {
    lookedAt = performance.now()
    if (!places || !isCurrent(places)) return true
    for (const { result } of entries.values()) if (!isCurrent(result.files, places)) return true
    return false
  }

  async function readAgain(): Promise<LoadedTools> {
    // Before all else: what changes from here on is a change.
    const before = stampFiles(source.watched())
    try {
      const { files, problems } = await source.find()
      entries = await load(files)
      return told(problems)
    } finally {
      // Also where it failed: until something changes, another look would find the same.
      places = before
    }
  }

  function told(problems: readonly RegistryProblem[]): LoadedTools {
    found = true
    const results = [...entries.values()].map(({ result }) => result)
    loaded = {
      tools: results.flatMap(({ tools }) => tools),
      problems: [...problems, ...results.flatMap(({ problem }) => problem ?? [])],
    }
    return loaded
  }

  /** A folder that cannot be read any more takes no tool away from a run. */
  function keepOn(error: unknown): LoadedTools {
    if (!found) throw error
    const message = errorMessage(error)
    // The same object for the same fault: a run is made ready anew for another one.
    if (loaded.problems[0]?.message !== message)
      loaded = { tools: loaded.tools, problems: [{ file: "custom tools", message }] }
    return loaded
  }

  async function load(files: readonly ToolFile[]): Promise<Map<string, Entry>> {
    const begin = (file: ToolFile): Promise<LoadedToolFile> => {
      const known = entries.get(file.path)
      return known && isSame(known, file) ? Promise.resolve(known.result) : loadToolFile(file, host)
    }
    // Side by side: each is a process of its own that is waited for.
    const described = new Map(
      files.filter(({ path }) => !isModuleFile(path)).map((file) => [file.path, begin(file)]),
    )
    const next = new Map<string, Entry>()
    // One after the other: the limit of each is for itself.
    for (const file of files) {
      next.set(file.path, { file, result: await (described.get(file.path) ?? begin(file)) })
    }
    return next
  }

  return {
    changed,
    changedLately: () => performance.now() - lookedAt >= restMs && changed(),
    last: () => loaded,
    async read() {
      if (reading) return reading
      if (!changed()) return loaded
      reading = readAgain()
        .catch(keepOn)
        .finally(() => {
          reading = undefined
        })
      return reading
    },
  }
}

/** A source for files that are named one by one; undefined where there are none. */
export function namedToolFiles(files: readonly (string | ToolFile)[]): ToolFileSource | undefined {
  if (files.length === 0) return undefined
  const named = files.map((file) => (typeof file === "string" ? { path: file } : file))
  return { watched: () => [], find: async () => ({ files: named, problems: [] }) }
}

interface Entry {
  file: ToolFile
  result: LoadedToolFile
}

/** One that failed is tried again: what it lacked may be there now. */
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
