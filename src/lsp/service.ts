import { existsSync } from "node:fs"
import { delimiter, dirname, join } from "node:path"
import type { Diagnostic, ServerCapabilities } from "vscode-languageserver-protocol"
import { orAbort, throwIfAborted } from "../util/abort.ts"
import { findProgram, type ProgramLocations, programDirectories } from "../util/find-program.ts"
import { isInside } from "../util/paths.ts"
import type { RecordTree } from "../util/process.ts"
import { type FileChange, type LanguageClient, type Limit, startClient } from "./client.ts"
import type { LspConfig } from "./config.ts"
import { NoServerError, ServerAnswerError, ServerEndedError } from "./connection.ts"
import { initializationOf, type LanguageServer, languageServers } from "./servers.ts"

/** Provides language servers, each of which starts when it is first needed. Paths are absolute with links resolved. */
export interface LanguageService {
  /** Finds the server for a file. Throws `NoServerError` if no server is available for the file. */
  find(path: string): Promise<FoundServer>
  /**
   * Sends a request to a server. Starts the server if needed, including after a crash. Throws `NoServerError` if no
   * server is available, and the errors of `startClient` and `LanguageClient.request`.
   */
  ask<T>(question: LanguageQuestion): Promise<T>
  /** Returns a file's diagnostics, or undefined if the server reports none in time. Throws the same errors as `ask`. */
  diagnose(path: string, signal: AbortSignal): Promise<Diagnostic[] | undefined>
  /**
   * Notifies the running servers of changed files and returns the diagnostics that they report within `editMs`. Omits
   * files without a report. Starts no servers and never rejects.
   */
  changed(changes: readonly ChangedPath[], signal: AbortSignal): Promise<FileDiagnostics[]>
  /** Ends all servers. */
  close(): Promise<void>
}

/** The server for a file. */
export interface FoundServer {
  id: string
  /** Absolute path of the program. */
  program: string
  /** Root directory of the project. */
  root: string
  /** Whether the server has been started before. */
  started: boolean
}

/** A protocol request to the server for `path`. */
export interface LanguageQuestion {
  path: string
  method: string
  params: unknown
  /** The capability that the request requires. */
  needs: keyof ServerCapabilities
  signal: AbortSignal
}

/** A file that was changed on disk. */
export interface ChangedPath {
  path: string
  kind: FileChange
}

/** The diagnostics of one file. An empty list means that the server found no problems. */
export interface FileDiagnostics {
  path: string
  diagnostics: Diagnostic[]
}

/** The servers, and the programs that may run. */
export interface LanguageServiceOptions {
  /** The `lsp` key in the config. Default: the known servers that are installed. */
  config?: LspConfig
  /** Absolute path with links resolved. */
  worktree: string
  /** Whether programs inside the worktree may run. */
  trusted: boolean
  /** Environment for servers, including `PATH`. */
  environment: Readonly<Record<string, string | undefined>>
  /** Records each running server, so that a later process can end it if this process is killed. */
  record?: RecordTree
  limits?: Partial<LanguageLimits>
}

/** Time limits in milliseconds. */
export interface LanguageLimits {
  /** Time limit for the start of a server. */
  startMs: number
  /** Time limit for a response. */
  requestMs: number
  /** Time limit for requested diagnostics. */
  diagnoseMs: number
  /** Time limit for diagnostics after an edit. The result of the edit waits for these diagnostics. */
  editMs: number
}

/**
 * Default limits. `startMs` and `requestMs` are sufficient for very large projects. `editMs` is three times the slowest
 * response measured on a small project: 10 ms for `tsc --lsp`, 40 to 160 ms for typescript-language-server, and 500 ms
 * for pyright.
 */
const defaultLimits: LanguageLimits = {
  startMs: 45_000,
  requestMs: 30_000,
  diagnoseMs: 15_000,
  editMs: 1_500,
}

/**
 * Time in milliseconds without a report, after which the wait for published diagnostics ends. Servers may publish quick
 * diagnostics first, such as syntax errors. After an edit, a running server publishes all diagnostics together.
 */
const quietMs = { diagnose: 1_000, edit: 150 }

/** Restart limits for a server that ends. */
const restarts = { max: 3, withinMs: 10 * 60_000 }

interface Target {
  server: LanguageServer
  root: string
  program: string
}

interface Entry {
  client: Promise<LanguageClient>
  /** The server's client. Set once the server has started. */
  running?: LanguageClient
}

/** Creates a service with one client for each server and root. */
export function createLanguageService(options: LanguageServiceOptions): LanguageService {
  const { worktree, trusted, environment } = options
  const limits = { ...defaultLimits, ...options.limits }
  const servers = languageServers(options.config)
  const locations: ProgramLocations = { worktree, trusted, searchPath: environment.PATH ?? "" }
  const entries = new Map<string, Entry>()
  /** Start times by key, used to count restarts. */
  const starts = new Map<string, number[]>()
  const closing = new AbortController()

  function targetFor(path: string): Target {
    const candidates = servers.filter(({ extensions }) => extensions.some((end) => path.endsWith(end)))
    for (const server of candidates) {
      const program = findProgram(server.command[0], locations)
      if (program !== undefined) return { server, program, root: findRoot(path, server.roots, worktree) }
    }
    throw noServer(path, candidates, trusted)
  }

  /** Returns the running client, or starts one. */
  function clientFor(target: Target): Promise<LanguageClient> {
    if (closing.signal.aborted)
      throw new NoServerError("The language servers have stopped, because Tackle is closing.")
    const key = keyOf(target)
    const entry = entries.get(key)
    if (entry && (!entry.running || entry.running.alive())) return entry.client
    const recent = (starts.get(key) ?? []).filter((time) => time > performance.now() - restarts.withinMs)
    if (recent.length > restarts.max) {
      throw new NoServerError(
        `The language server ${target.server.id} was started ${recent.length} times within ten minutes, so Tackle does not start it again yet. Use grep and read.`,
      )
    }
    starts.set(key, [...recent, performance.now()])
    const begun: Entry = { client: start(target, entry?.running) }
    entries.set(key, begun)
    begun.client.then(
      (client) => {
        begun.running = client
      },
      () => {
        if (entries.get(key) === begun) entries.delete(key)
      },
    )
    return begun.client
  }

  /** Starts a client. First ends any remaining processes of the previous server. */
  async function start(
    { server, program, root }: Target,
    previous?: LanguageClient,
  ): Promise<LanguageClient> {
    await previous?.end()
    return startClient({
      server: { ...server, initialization: initializationOf(server, { program, trusted }) },
      argv: [program, ...server.command.slice(1)],
      root,
      env: { ...environment, ...server.env, PATH: programDirectories(locations).join(delimiter) },
      record: options.record,
      limit: { ms: limits.startMs, signal: closing.signal },
    })
  }

  /**
   * Runs `work`, and runs it once more if the server ended in the meantime. If the signal aborts, a start in progress
   * continues.
   */
  async function withClient<T>(
    path: string,
    signal: AbortSignal,
    work: (client: LanguageClient, target: Target) => Promise<T>,
  ): Promise<T> {
    const target = targetFor(path)
    try {
      return await work(await orAbort(clientFor(target), signal), target)
    } catch (error) {
      if (!(error instanceof ServerEndedError) || closing.signal.aborted) throw error
      throwIfAborted(signal)
      return work(await orAbort(clientFor(target), signal), target)
    }
  }

  async function diagnoseChange({ path, kind }: ChangedPath, limit: Limit): Promise<FileDiagnostics[]> {
    const running = runningFor(path)
    for (const client of running) client.changed(path, kind)
    if (kind === "deleted") return []
    // A failed or slow server must not affect the edit.
    const found = await Promise.allSettled(
      running.map((client) => client.diagnostics(path, { ...limit, quietMs: quietMs.edit })),
    )
    const reported = found.flatMap((result) =>
      result.status === "fulfilled" && result.value ? [result.value] : [],
    )
    return reported.length === 0 ? [] : [{ path, diagnostics: reported.flat() }]
  }

  function runningFor(path: string): LanguageClient[] {
    return servers
      .filter(({ extensions }) => extensions.some((end) => path.endsWith(end)))
      .flatMap((server) => {
        const running = entries.get(keyOf({ server, root: findRoot(path, server.roots, worktree) }))?.running
        return running?.alive() ? [running] : []
      })
  }

  return {
    async find(path): Promise<FoundServer> {
      const target = targetFor(path)
      const { server, program, root } = target
      return { id: server.id, program, root, started: starts.has(keyOf(target)) }
    },
    ask: ({ path, method, params, needs, signal }) =>
      withClient(path, signal, (client, { server }) => {
        if (!client.capabilities[needs])
          throw new ServerAnswerError(`The language server ${server.id} does not support ${method}.`)
        return client.request(path, method, params, { ms: limits.requestMs, signal })
      }),
    diagnose: (path, signal) =>
      withClient(path, signal, (client) =>
        client.diagnostics(path, { ms: limits.diagnoseMs, quietMs: quietMs.diagnose, signal }),
      ),
    async changed(changes, signal) {
      const limit = { ms: limits.editMs, signal }
      const found = await Promise.all(changes.map((change) => diagnoseChange(change, limit)))
      return found.flat()
    },
    async close() {
      closing.abort()
      const clients = await Promise.allSettled([...entries.values()].map(({ client }) => client))
      await Promise.all(
        clients.map((result) => (result.status === "fulfilled" ? result.value.end() : undefined)),
      )
    },
  }
}

function keyOf({ server, root }: Pick<Target, "server" | "root">): string {
  return `${server.id} ${root}`
}

/**
 * Returns the project directory for a file: the nearest parent directory inside the worktree that contains a marker.
 * Without a marker, returns the worktree. For a file outside the worktree, returns its directory. Paths are absolute
 * with links resolved.
 */
export function findRoot(path: string, markers: readonly string[], worktree: string): string {
  if (!isInside(path, worktree)) return dirname(path)
  for (let directory = dirname(path); isInside(directory, worktree); directory = dirname(directory)) {
    if (markers.some((marker) => existsSync(join(directory, marker)))) return directory
    if (directory === dirname(directory)) break
  }
  return worktree
}

function noServer(path: string, candidates: readonly LanguageServer[], trusted: boolean): NoServerError {
  if (candidates.length === 0)
    return new NoServerError(
      `No language server is configured for ${path}. Use grep and read. To add a server, the user can configure it under "lsp" in the config.`,
    )
  const programs = candidates.map(({ command }) => command[0]).join(", ")
  const hint = trusted ? "" : " Programs in this untrusted project are not run."
  return new NoServerError(
    `No language server for ${path} was found (programs not found: ${programs}).${hint} Use grep and read.`,
  )
}
