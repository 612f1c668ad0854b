import { errorMessage } from "../util/errors.ts"
import { isCurrent } from "../util/file-stamp.ts"
import { type FollowedFiles, followFiles } from "../util/follow-files.ts"
import { isModuleFile } from "../util/load-module.ts"
import type { PinnedFiles } from "../util/pinned-files.ts"
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

/** The tool files there are. `problems`: what is to be said of those that may not run. */
export interface FoundToolFiles {
  files: readonly ToolFile[]
  problems: readonly RegistryProblem[]
}

/** Custom tools that follow their files. Only what changed is loaded again, and no reading rejects for what a file does. */
export type LiveToolFiles = FollowedFiles<LoadedTools>

/** The tools that the files hold. `problems`: also why a tool of a file is not among them. */
export interface LoadedTools {
  tools: readonly RegisteredTool[]
  problems: readonly RegistryProblem[]
}

/** Nothing is read before {@link LiveToolFiles.read}. Readers at the same time share one reading. */
export function openToolFiles(source: ToolFileSource, host: ToolFileHost): LiveToolFiles {
  let entries: ReadonlyMap<string, Entry> = new Map()
  /** Whether the files were found at least once. */
  let found = false
  const followed = followFiles<LoadedTools>({
    watched: source.watched,
    besides: () => [...entries.values()].map(({ result }) => result.files),
    read,
    onFailure: keepOn,
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

  /** A folder that cannot be read any more takes no tool away from a run. */
  function keepOn(error: unknown): LoadedTools {
    if (!found) throw error
    const message = errorMessage(error)
    const last = followed.last()
    // The same object for the same fault: a run is made ready anew for another one.
    if (last.problems[0]?.message === message) return last
    return { tools: last.tools, problems: [{ file: "custom tools", message }] }
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

  return followed
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
