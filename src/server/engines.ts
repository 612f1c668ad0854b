import { realpathSync, statSync } from "node:fs"
import { isAbsolute } from "node:path"
import type { Tackle } from "../engine/tackle.ts"
import type { TackleEvent } from "../event/events.ts"
import { isInside } from "../util/paths.ts"
import { counted } from "../util/words.ts"
import { ServerError } from "./errors.ts"

/** Options for {@link createEngines}. */
export interface EnginesOptions {
  /** Directories with the projects that the server may open. All symbolic links are resolved. */
  roots: readonly string[]
  /** Opens an engine for a directory. */
  open(directory: string): Promise<Tackle>
  /** Returns true if the session has work to do or waits for the user. */
  isActive(tackle: Tackle, sessionID: string): Promise<boolean>
  /** Time in milliseconds after which an engine is closed if it has no active sessions and no requests use it. */
  idleMs: number
  /** Maximum number of open engines. */
  maxEngines: number
  onProblem(message: string, error: unknown): void
}

/** An open engine. It is not closed for inactivity before `release` is called. */
export interface HeldEngine {
  tackle: Tackle
  /** Allows the engine to be closed when no other request uses it. Idempotent. */
  release(): void
}

/** A server's engines, one per directory. */
export interface Engines {
  /** Directories that contain all projects. */
  readonly roots: readonly string[]
  /** The first root. Used for requests that do not specify a directory. */
  readonly defaultDirectory: string
  /**
   * Returns the path of a directory with all symbolic links resolved. Throws `ServerError` if `directory` is not the
   * absolute path of a directory inside the roots.
   */
  resolve(directory: string): string
  /** Throws `ServerError` if a stored session's directory is outside the roots. */
  assertServed(directory: string): void
  /** Returns true for a directory inside the roots. */
  isServed(directory: string): boolean
  /**
   * Returns the engine for a directory, and opens it if necessary. Throws the same errors as `resolve` and {@link
   * EnginesOptions.open}, and `ServerError` if the server is stopping or too many engines are in use.
   */
  hold(directory: string): Promise<HeldEngine>
  /** Runs `work` with the engine for a directory. */
  use<T>(directory: string, work: (tackle: Tackle) => Promise<T>): Promise<T>
  /** Returns the engine for a directory, or undefined if it is not open. */
  find(directory: string): Tackle | undefined
  all(): Tackle[]
  /** Returns the sessions that have published events since their engine was opened. Idle sessions may be missing. */
  sessions(): { tackle: Tackle; sessionID: string }[]
  /** Calls the listener for every event of every engine. Returns a function that unsubscribes. */
  subscribe(listener: (event: TackleEvent, tackle: Tackle) => void): () => void
  /** Closes all engines. Running sessions are interrupted. */
  close(): Promise<void>
}

interface Entry {
  opening: Promise<Tackle>
  tackle?: Tackle
  users: number
  /** Sessions that have published events since the engine was opened. */
  sessions: Set<string>
  timer?: NodeJS.Timeout
}

/** Creates the registry of engines. Opens no engine until one is requested. */
export function createEngines(options: EnginesOptions): Engines {
  const { roots, open, isActive, idleMs, maxEngines, onProblem } = options
  const entries = new Map<string, Entry>()
  const listeners = new Set<(event: TackleEvent, tackle: Tackle) => void>()
  let closed = false

  const isServed = (directory: string) => roots.some((root) => isInside(directory, root))

  function assertServed(directory: string): void {
    if (!isServed(directory)) throw outside("The directory of the session")
  }

  function outside(subject: string): ServerError {
    return new ServerError(
      `${subject} is outside the directories that this server serves: ${roots.join(", ")}. Start the server with --root to serve it.`,
      { code: "directory.forbidden" },
    )
  }

  function resolve(directory: string): string {
    if (!isAbsolute(directory) || directory.includes("\0"))
      throw invalid(`The directory ${JSON.stringify(directory)} is not an absolute path.`)
    let real: string
    try {
      real = realpathSync(directory)
    } catch {
      // Outside the roots, the response must not reveal which directories exist.
      if (!isServed(directory)) throw outside(directory)
      throw invalid(`The directory ${directory} does not exist.`)
    }
    // The response must not reveal the target of a link.
    if (!isServed(real)) throw outside(directory)
    if (!statSync(real).isDirectory()) throw invalid(`${directory} is not a directory.`)
    return real
  }

  async function start(directory: string, entry: Entry): Promise<Tackle> {
    try {
      const tackle = await open(directory)
      tackle.subscribe((event) => {
        entry.sessions.add(event.sessionID)
        for (const listener of listeners) listener(event, tackle)
      })
      entry.tackle = tackle
      return tackle
    } catch (error) {
      entries.delete(directory)
      throw error
    }
  }

  function entryOf(directory: string): Entry {
    const known = entries.get(directory)
    if (known) return known
    const entry: Entry = { opening: Promise.resolve() as never, users: 0, sessions: new Set() }
    entries.set(directory, entry)
    entry.opening = start(directory, entry)
    return entry
  }

  async function hold(given: string): Promise<HeldEngine> {
    const directory = resolve(given)
    if (closed) throw stopping()
    if (!entries.has(directory) && entries.size >= maxEngines) await makeRoom()
    const entry = entryOf(directory)
    entry.users += 1
    clearTimeout(entry.timer)
    let held = true
    const release = () => {
      if (held) entry.users -= 1
      if (held && entry.users === 0 && !closed) closeWhenIdle(directory, entry)
      held = false
    }
    try {
      return { tackle: await entry.opening, release }
    } catch (error) {
      release()
      throw error
    }
  }

  /** Closes an idle engine if the maximum number of engines is open. Throws `ServerError` if all engines are in use. */
  async function makeRoom(): Promise<void> {
    for (const [directory, entry] of entries) {
      if (entry.users === 0) await closeIfIdle(directory, entry)
      if (entries.size < maxEngines) return
    }
    throw tooMany(
      `The server already uses ${counted(maxEngines, "directory", "directories")}, which is its limit.`,
    )
  }

  function closeWhenIdle(directory: string, entry: Entry): void {
    entry.timer = setTimeout(() => {
      void closeIfIdle(directory, entry).catch((error: unknown) =>
        onProblem("an idle engine could not be closed", error),
      )
    }, idleMs)
    entry.timer.unref()
  }

  async function closeIfIdle(directory: string, entry: Entry): Promise<void> {
    const { tackle } = entry
    if (!tackle) return
    for (const id of entry.sessions) {
      if (await isActive(tackle, id)) {
        clearTimeout(entry.timer)
        return closeWhenIdle(directory, entry)
      }
      entry.sessions.delete(id)
    }
    if (closed || entry.users > 0 || entries.get(directory) !== entry) return
    clearTimeout(entry.timer)
    entries.delete(directory)
    await tackle.close()
  }

  return {
    roots,
    defaultDirectory: roots[0] ?? "/",
    resolve,
    assertServed,
    isServed,
    hold,
    async use(directory, work) {
      const { tackle, release } = await hold(directory)
      try {
        return await work(tackle)
      } finally {
        release()
      }
    },
    find: (directory) => entries.get(directory)?.tackle,
    all: () => [...entries.values()].flatMap(({ tackle }) => tackle ?? []),
    sessions: () =>
      [...entries.values()].flatMap(({ tackle, sessions }) =>
        tackle ? [...sessions].map((sessionID) => ({ tackle, sessionID })) : [],
      ),
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    async close() {
      closed = true
      const closing = [...entries.values()].map(async ({ opening, timer }) => {
        clearTimeout(timer)
        const tackle = await opening.catch(() => undefined)
        await tackle?.close()
      })
      await Promise.all(closing)
    },
  }
}

function invalid(message: string): ServerError {
  return new ServerError(message, { code: "directory.invalid" })
}

/** Returns the error for a request that would exceed a server limit. `reason` describes the limit. */
export function tooMany(reason: string): ServerError {
  return new ServerError(`${reason} Send the request again later.`, {
    code: "server.busy",
    headers: { "retry-after": "5" },
  })
}

/** Returns the error for a request to a server that is stopping. */
export function stopping(): ServerError {
  return new ServerError(
    "The server is stopping and does not accept new work. Send the request again later.",
    {
      code: "server.stopping",
      headers: { "retry-after": "5" },
    },
  )
}
