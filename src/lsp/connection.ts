import { Readable, Writable } from "node:stream"
import {
  CancellationTokenSource,
  createMessageConnection,
  type MessageConnection,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-jsonrpc/node"
import { abortedError, TimeoutError, within } from "../util/abort.ts"
import { errorMessage } from "../util/errors.ts"
import { type ProcessInput, type RecordTree, type RunningProcess, startProcess } from "../util/process.ts"
import { ServerAnswerError, ServerEndedError } from "./errors.ts"

/** A server process, and the messages between it and us. */
export interface Connection {
  /**
   * Rejects with `ServerAnswerError`, with `ServerEndedError` when the process ends, with `TimeoutError` after `ms`, and
   * with the signal's reason. The server is told of both of these.
   */
  request<T>(method: string, params: unknown, limit: { ms: number; signal: AbortSignal }): Promise<T>
  /** Like writing a letter: it is not known whether anyone reads it. */
  notify(method: string, params?: unknown): void
  /** False once the process ended, or was told to. */
  alive(): boolean
  /** Fires when the process has ended, with a `ServerEndedError` as its reason. */
  readonly gone: AbortSignal
  /** Bytes that came from it so far, of whatever kind. */
  received(): number
  /** Asks it to end, then ends it with all that it started. May be called again. */
  end(): Promise<void>
}

/** The program to start, and who hears what it says by itself. */
export interface ConnectionOptions {
  /** How errors name the server. */
  name: string
  argv: readonly [string, ...string[]]
  cwd: string
  env: Readonly<Record<string, string | undefined>>
  /** Writes it down while it runs, so that it is ended where this process is killed. */
  record: RecordTree | undefined
  onNotification(method: string, params: unknown): void
  /** The answer to what the server asks; undefined where it is not known. */
  onRequest(method: string, params: unknown): unknown
}

/** A well-behaved server answers `shutdown` at once; one that does not is ended all the same. In milliseconds. */
const goodbyeMs = 500

/** So much of the end of standard error is shown when a server ended, in characters. */
const shownErrors = 1_000

/** JSON-RPC's number for a request that the server does not have. */
const methodNotFound = -32_601

/** Starts the program. Throws `SpawnError` or `PipeError`. */
export async function openConnection(options: ConnectionOptions): Promise<Connection> {
  const { name } = options
  const output = new Readable({ read() {} })
  let received = 0
  let errors = ""
  const child = await startProcess({
    argv: options.argv,
    cwd: options.cwd,
    env: options.env,
    input: true,
    record: options.record,
    onOutput(bytes) {
      received += bytes.length
      output.push(Buffer.from(bytes))
    },
    onErrorOutput(bytes) {
      errors = (errors + Buffer.from(bytes).toString()).slice(-shownErrors)
    },
  })
  const gone = new AbortController()
  let ended: ServerEndedError | undefined
  let ending: Promise<void> | undefined
  const rpc = createMessageConnection(
    new StreamMessageReader(output),
    new StreamMessageWriter(writableTo(child.input)),
  )

  function stop(why: string): void {
    if (ended) return
    ended = new ServerEndedError(
      name,
      `${why}${errors.trim() === "" ? "." : `. Its last words:\n${errors.trim()}`}`,
    )
    gone.abort(ended)
    rpc.dispose()
    output.destroy()
  }
  // Neither rejects.
  void child.exited.then(async ({ code, signal }) => {
    await within(child.closed, goodbyeMs)
    stop(signal ? `it was ended by ${signal}` : `it exited with code ${code}`)
    if (ending === undefined) await clearAway(child)
  })
  rpc.onError(([error]) => stop(`what it writes is not understood (${error.message})`))
  rpc.onNotification((method, params) => {
    if (!ended) options.onNotification(method, params)
  })
  rpc.onRequest((method, params) => {
    const answer = options.onRequest(method, params)
    return answer === undefined ? new ResponseError(methodNotFound, `${method} is not known here`) : answer
  })
  rpc.listen()

  const connection: Connection = {
    async request<T>(method: string, params: unknown, limit: { ms: number; signal: AbortSignal }) {
      if (ended) throw ended
      try {
        return await ask<T>(rpc, { name, method, params, ...limit })
      } catch (error) {
        if (ended) throw ended
        if (!(error instanceof ResponseError)) throw error
        throw new ServerAnswerError(`${name} could not answer ${method}: ${errorMessage(error)}`, error)
      }
    },
    notify(method, params) {
      // A process that reads no more is about to end, which requests hear of.
      if (!ended) rpc.sendNotification(method, params).catch(() => {})
    },
    alive: () => ended === undefined && ending === undefined,
    gone: gone.signal,
    received: () => received,
    end: () => (ending ??= end(connection, child, () => stop("it was told to"))),
  }
  return connection
}

async function ask<T>(
  rpc: MessageConnection,
  request: { name: string; method: string; params: unknown; ms: number; signal: AbortSignal },
): Promise<T> {
  const { name, method, params, ms, signal } = request
  const { promise: stopped, reject } = Promise.withResolvers<never>()
  const cancellation = new CancellationTokenSource()
  const late = new TimeoutError(`${name} did not answer ${method} within ${ms / 1000} s.`, ms)
  const stop = (error: Error) => {
    cancellation.cancel()
    reject(error)
  }
  const onAbort = () => stop(abortedError(signal))
  const timer = setTimeout(() => stop(late), ms)
  if (signal.aborted) onAbort()
  signal.addEventListener("abort", onAbort, { once: true })
  try {
    return await Promise.race([rpc.sendRequest<T>(method, params, cancellation.token), stopped])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener("abort", onAbort)
    cancellation.dispose()
  }
}

async function end(connection: Connection, child: RunningProcess, stop: () => void): Promise<void> {
  try {
    await connection.request("shutdown", undefined, { ms: goodbyeMs, signal: new AbortController().signal })
    connection.notify("exit")
    await within(child.exited, goodbyeMs)
  } catch {
    // It is ended whatever it answers.
  } finally {
    await clearAway(child)
    stop()
  }
}

/** What it started does not outlive it; only then there is nothing left that a later start would have to end. */
async function clearAway(child: RunningProcess): Promise<void> {
  await child.kill()
  child.removeRecords()
}

function writableTo(input: ProcessInput | undefined): Writable {
  return new Writable({
    decodeStrings: false,
    write(chunk: string | Uint8Array, _encoding, done) {
      const text = typeof chunk === "string" ? chunk : Buffer.from(chunk).toString()
      input?.write(text).then(() => done(), done)
    },
  })
}
