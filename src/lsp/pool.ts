import { delimiter } from "node:path"
import { orAbort, throwIfAborted } from "../util/abort.ts"
import { findProgram, type ProgramLocations, programDirectories } from "../util/find-program.ts"
import { type FileChange, type LanguageClient, type Limit, startClient } from "./client.ts"
import { NoServerError, ServerAnswerError, ServerEndedError } from "./errors.ts"
import { findRoot } from "./find-root.ts"
import { initializationOf, type LanguageServer, languageServers } from "./servers.ts"
import type {
  FileDiagnostics,
  FoundServer,
  LanguageLimits,
  LanguageService,
  LanguageServiceOptions,
} from "./service.ts"

/**
 * `startMs` and `requestMs`: what the largest projects take; after it something is wrong. `editMs`: on a small project a
 * running `tsc --lsp` answers in 10 ms, typescript-language-server in 40 to 160, pyright in half a second; three times that.
 */
const defaultLimits: LanguageLimits = {
  startMs: 45_000,
  requestMs: 30_000,
  diagnoseMs: 15_000,
  editMs: 1_500,
}

/**
 * Servers that are not asked for their diagnostics may send first what is quickly found, such as faults of syntax: so
 * much silence ends it. After an edit the server is warm, and what it has to say comes together. In milliseconds.
 */
const quietMs = { diagnose: 1_000, edit: 150 }

/** A server that ends by itself is started again so often within the time; then only after it is over. */
const restarts = { max: 3, withinMs: 10 * 60_000 }

interface Place {
  server: LanguageServer
  root: string
  program: string
}

interface Entry {
  client: Promise<LanguageClient>
  /** Set once it is up. */
  running?: LanguageClient
}

/** One client for each server and root. */
export function createServerPool(options: LanguageServiceOptions): LanguageService {
  const { worktree, trusted, environment } = options
  const limits = { ...defaultLimits, ...options.limits }
  const servers = languageServers(options.config)
  const places: ProgramLocations = { worktree, trusted, searchPath: environment.PATH ?? "" }
  const entries = new Map<string, Entry>()
  /** When each started, by its key: to count restarts, and to know what was allowed to start. */
  const starts = new Map<string, number[]>()
  const closing = new AbortController()

  function placeFor(path: string): Place {
    const fitting = servers.filter(({ extensions }) => extensions.some((end) => path.endsWith(end)))
    for (const server of fitting) {
      const program = findProgram(server.command[0], places)
      if (program !== undefined) return { server, program, root: findRoot(path, server.roots, worktree) }
    }
    throw noServer(path, fitting)
  }

  /** The running client, or a new one. */
  function clientFor(place: Place): Promise<LanguageClient> {
    if (closing.signal.aborted) throw new NoServerError("Language servers are ended: the session is over.")
    const key = keyOf(place)
    const entry = entries.get(key)
    if (entry && (!entry.running || entry.running.alive())) return entry.client
    const recent = (starts.get(key) ?? []).filter((time) => time > Date.now() - restarts.withinMs)
    if (recent.length > restarts.max) {
      throw new NoServerError(
        `The language server ${place.server.id} was started ${recent.length} times within ten minutes and is not started again for now. Use grep and read.`,
      )
    }
    starts.set(key, [...recent, Date.now()])
    const begun: Entry = { client: start(place, entry?.running) }
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

  /** What is left of the one before is cleared away first. */
  async function start({ server, program, root }: Place, before?: LanguageClient): Promise<LanguageClient> {
    await before?.end()
    return startClient({
      server: { ...server, initialization: initializationOf(server, { program, trusted }) },
      argv: [program, ...server.command.slice(1)],
      root,
      env: { ...environment, ...server.env, PATH: programDirectories(places).join(delimiter) },
      record: options.record,
      limit: { ms: limits.startMs, signal: closing.signal },
    })
  }

  /** Does the work; once more where the server ended meanwhile. A start goes on without whoever has to go. */
  async function withClient<T>(
    path: string,
    signal: AbortSignal,
    work: (client: LanguageClient, place: Place) => Promise<T>,
  ): Promise<T> {
    const place = placeFor(path)
    try {
      return await work(await orAbort(clientFor(place), signal), place)
    } catch (error) {
      if (!(error instanceof ServerEndedError) || closing.signal.aborted) throw error
      throwIfAborted(signal)
      return work(await orAbort(clientFor(place), signal), place)
    }
  }

  async function diagnoseChange(path: string, kind: FileChange, limit: Limit): Promise<FileDiagnostics[]> {
    const running = runningFor(path)
    for (const client of running) client.changed(path, kind)
    if (kind === "deleted") return []
    const found = await Promise.allSettled(
      running.map((client) => client.diagnostics(path, { ...limit, quietMs: quietMs.edit })),
    )
    // An edit is done whatever a server makes of it: one that ends or is late has nothing to say.
    const heard = found.flatMap((result) =>
      result.status === "fulfilled" && result.value ? [result.value] : [],
    )
    return heard.length === 0 ? [] : [{ path, diagnostics: heard.flat() }]
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
      const place = placeFor(path)
      const { server, program, root } = place
      return { id: server.id, program, root, started: starts.has(keyOf(place)) }
    },
    ask: ({ path, method, params, needs, signal }) =>
      withClient(path, signal, (client, { server }) => {
        if (!client.capabilities[needs])
          throw new ServerAnswerError(`The language server ${server.id} cannot do this (${method}).`)
        return client.request(path, method, params, { ms: limits.requestMs, signal })
      }),
    diagnose: (path, signal) =>
      withClient(path, signal, (client) =>
        client.diagnostics(path, { ms: limits.diagnoseMs, quietMs: quietMs.diagnose, signal }),
      ),
    async changed(changes, signal) {
      const limit = { ms: limits.editMs, signal }
      const found = await Promise.all(changes.map(({ path, kind }) => diagnoseChange(path, kind, limit)))
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

function keyOf({ server, root }: Pick<Place, "server" | "root">): string {
  return `${server.id} ${root}`
}

function noServer(path: string, fitting: readonly LanguageServer[]): NoServerError {
  if (fitting.length === 0)
    return new NoServerError(
      `No language server is known for ${path}. Use grep and read, or name one under "lsp" in the configuration.`,
    )
  const programs = fitting.map(({ command }) => command[0]).join(", ")
  return new NoServerError(
    `No language server for ${path} is installed: looked for ${programs} on PATH. Use grep and read.`,
  )
}
