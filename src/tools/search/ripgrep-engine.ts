import { type ChildProcessByStdio, spawn } from "node:child_process"
import { basename, dirname, join } from "node:path"
import type { Readable } from "node:stream"
import { rulesAbove } from "../../files/ignore-rules.ts"
import { throwIfAborted } from "../../util/abort.ts"
import { type RipgrepMatch, readRecords } from "./ripgrep-records.ts"
import {
  assertSingleLine,
  EngineUnavailableError,
  type FileMatches,
  type FileQuery,
  InvalidPatternError,
  type SearchEngine,
  SearchFailedError,
  type SearchRoot,
  type TextQuery,
} from "./search-engine.ts"

/** These flags make results independent of the machine: only the project's ignore files apply. */
const commonFlags = [
  "--no-config",
  "--no-messages",
  "--no-ignore-messages",
  "--no-ignore-global",
  "--hidden",
  "--glob=!.git",
]

/** Approximate number of characters of standard error to keep. */
const maxErrorLength = 2000

/** ripgrep's exit code for any error, such as an invalid pattern or an unreadable file. */
const failedCode = 2

/**
 * Creates an engine that runs one ripgrep process per call. The process is killed if the loop ends early or the signal
 * aborts. If `binary` rejects or the program does not start, the calls throw {@link EngineUnavailableError}.
 */
export function createRipgrepEngine(binary: () => Promise<string> = packagedBinary): SearchEngine {
  return {
    async *files(query) {
      const args = ["--files", "--null", ...(await rootArguments(query.root))]
      const decoder = new TextDecoder()
      let rest = ""
      for await (const chunk of run(binary, args, query)) {
        const names = (rest + decoder.decode(chunk, { stream: true })).split("\0")
        rest = names.pop() ?? ""
        for (const name of names) if (query.accepts(plain(name))) yield absolute(query.root, name)
      }
    },

    async *search(query) {
      assertSingleLine(query.pattern)
      const args = ["--json", "--crlf", "--engine=auto", `--max-count=${query.maxCount}`]
      if (query.nameGlob !== undefined) args.push(`--type-add=wanted:${query.nameGlob}`, "--type=wanted")
      args.push(`--regexp=${query.pattern}`, ...(await rootArguments(query.root)))
      // Files are searched in parallel, but the records of a file are contiguous.
      let matches: RipgrepMatch[] = []
      let count = 0
      for await (const record of readRecords(run(binary, args, query, query.pattern), query.maxLineLength)) {
        if (record.type === "match") {
          count += 1
          if (matches.length < query.maxLines) matches.push(record)
          continue
        }
        const found = fileMatches(query, record.path, matches, count)
        if (found && !record.binary) yield found
        if (!record.whole) query.onUnreadable()
        matches = []
        count = 0
      }
    },
  }
}

/**
 * Returns the path of the packaged program. Imports the package lazily, because the package throws on import if it has
 * no binary for the platform.
 */
async function packagedBinary(): Promise<string> {
  const { rgPath } = await import("@vscode/ripgrep")
  return rgPath
}

/**
 * Returns the arguments that select what to search. ripgrep runs inside the searched directory, so that it searches
 * this directory even if ignore files exclude it. Inside a git repository, ripgrep collects rules up to the repository
 * root. Outside a repository, ripgrep needs a flag to apply `.gitignore` files.
 */
async function rootArguments(root: SearchRoot): Promise<string[]> {
  if (root.kind === "file") return [...commonFlags, "--", `./${basename(root.path)}`]
  const { excluded, repository } = await rulesAbove(root.path)
  const args = [...commonFlags]
  if (excluded) args.push("--no-ignore-parent")
  if (excluded || !repository) args.push("--no-require-git")
  return [...args, "--", "./"]
}

function fileMatches(
  query: TextQuery,
  name: string,
  matches: RipgrepMatch[],
  count: number,
): FileMatches | undefined {
  if (count === 0 || !query.accepts(plain(name))) return undefined
  const lines = matches.map(({ line, text }) => ({ line, text }))
  return { path: absolute(query.root, name), lines, count }
}

function plain(name: string): string {
  return name.startsWith("./") ? name.slice(2) : name
}

function absolute(root: SearchRoot, name: string): string {
  return root.kind === "file" ? root.path : join(root.path, name)
}

/** Yields chunks of standard output. `pattern` is set if an invalid pattern can make the search fail. */
async function* run(
  binary: () => Promise<string>,
  args: string[],
  query: FileQuery,
  pattern?: string,
): AsyncGenerator<Buffer> {
  throwIfAborted(query.signal)
  const { root, signal } = query
  const { child, ended } = await start(binary, args, root.kind === "file" ? dirname(root.path) : root.path)
  const kill = () => {
    child.kill("SIGKILL")
  }
  signal.addEventListener("abort", kill, { once: true })
  if (signal.aborted) kill()
  let complaint = ""
  child.stderr.on("data", (chunk: Buffer) => {
    if (complaint.length < maxErrorLength) complaint += chunk.toString()
  })
  try {
    for await (const chunk of child.stdout) yield chunk
    const end = await ended
    throwIfAborted(signal)
    checkEnd(end, complaint.trim(), query, pattern)
  } finally {
    signal.removeEventListener("abort", kill)
    kill()
    await ended
  }
}

interface End {
  code: number | null
  signal: NodeJS.Signals | null
}

async function start(
  binary: () => Promise<string>,
  args: string[],
  cwd: string,
): Promise<{ child: ChildProcessByStdio<null, Readable, Readable>; ended: Promise<End> }> {
  try {
    const child = spawn(await binary(), args, { cwd, env: {}, stdio: ["ignore", "pipe", "pipe"] })
    const started = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<End>()
    child.once("spawn", () => started.resolve())
    child.on("error", started.reject)
    child.once("close", (code, signal) => ended.resolve({ code, signal }))
    await started.promise
    return { child, ended: ended.promise }
  } catch (error) {
    throw new EngineUnavailableError("Cannot start ripgrep.", error)
  }
}

function checkEnd(end: End, complaint: string, query: FileQuery, pattern: string | undefined): void {
  if (end.code === 0 || end.code === 1) return
  if (end.code !== failedCode) {
    throw new SearchFailedError(
      `The search stopped early (${end.signal ?? end.code}). ${complaint}`.trimEnd(),
    )
  }
  if (complaint === "") query.onUnreadable()
  else if (pattern !== undefined) throw new InvalidPatternError(pattern, reason(complaint))
  else throw new SearchFailedError(`The search failed: ${complaint}`)
}

/** Returns only the default regex engine's error, because ripgrep repeats it for the second engine. */
function reason(complaint: string): string {
  const rules = complaint.split(/^~+$/m)
  return (rules[1] ?? complaint).replace(/^rg: /, "").trim()
}
