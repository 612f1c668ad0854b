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
import { errorMessage, TackleError } from "../util/errors.ts"
import { type ProcessInput, type RecordTree, type RunningProcess, startProcess } from "../util/process.ts"

/** A connection to a server process. */
export interface Connection {
  /**
   * Sends a request. Rejects with `ServerAnswerError` if the server answers with an error, with `ServerEndedError` if
   * the process ends, with `TimeoutError` after `ms` milliseconds, and with the error of `abortedError` if the signal
   * aborts. A timeout or abort cancels the request on the server.
   */
  request<T>(method: string, params: unknown, limit: { ms: number; signal: AbortSignal }): Promise<T>
  /** Sends a notification, which receives no response. */
  notify(method: string, params?: unknown): void
  /** Returns false if the process has ended or is being ended. */
  alive(): boolean
  /** Aborts when the process ends. Its reason is a `ServerEndedError`. */
  readonly gone: AbortSignal
  /** Returns the number of bytes received so far. */
  received(): number
  /** Shuts the server down and ends all processes that the server started. Idempotent. */
  end(): Promise<void>
}

/** The program to start, and handlers for its messages. */
export interface ConnectionOptions {
  /** Name of the server for error messages. */
  name: string
  argv: readonly [string, ...string[]]
  cwd: string
  env: Readonly<Record<string, string | undefined>>
  /** Records the server process, so that a later process can end it if this process is killed. */
  record: RecordTree | undefined
  onNotification(method: string, params: unknown): void
  /** Handles a request from the server. Returns the response, or undefined for an unknown method. */
  onRequest(method: string, params: unknown): unknown
}

/**
 * Time limit in milliseconds for each step of stopping a server: its response to `shutdown`, its exit, and its final
 * output.
 */
const shutdownMs = 500

/** Maximum number of characters from the end of stderr that an error message shows. */
const shownErrors = 1_000

/** JSON-RPC error code for an unknown method. */
const methodNotFound = -32_601

/**
 * Starts the program and opens a connection to it. Throws `SpawnError` or `PipeError` if the program cannot be started.
 */
export async function openConnection(options: ConnectionOptions): Promise<Connection> {
  const { name } = options
  const output = new Readable({ read() {} })
  const foreignText = createFrameCheck()
  let received = 0
  let errors = ""
  const child = await startProcess({
    argv: options.argv,
    cwd: options.cwd,
    env: options.env,
    input: true,
    record: options.record,
    paced: true,
    onOutput(bytes) {
      received += bytes.length
      const text = foreignText(bytes)
      if (text !== undefined) stop(`it sent invalid output (${JSON.stringify(text)})`)
      if (!ended) output.push(Buffer.from(bytes))
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
      `${why}${errors.trim() === "" ? "." : `. The end of its stderr:\n${errors.trim()}`}`,
    )
    gone.abort(ended)
    rpc.dispose()
    output.destroy()
  }
  // Neither `exited` nor `closed` rejects.
  void child.exited.then(async ({ code, signal }) => {
    await within(child.closed, shutdownMs)
    stop(signal ? `${signal} ended it` : `it exited with code ${code}`)
    if (ending === undefined) await killTree(child)
  })
  rpc.onError(([error]) => stop(`it sent invalid output (${error.message})`))
  rpc.onNotification((method, params) => {
    if (!ended) options.onNotification(method, params)
  })
  rpc.onRequest((method, params) => {
    const answer = options.onRequest(method, params)
    return answer === undefined ? new ResponseError(methodNotFound, `unknown method ${method}`) : answer
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
        throw new ServerAnswerError(`${name} could not handle ${method}: ${errorMessage(error)}`, error)
      }
    },
    notify(method, params) {
      // Ignore the error. A process that stopped reading is about to end, and requests then reject.
      if (!ended) rpc.sendNotification(method, params).catch(() => {})
    },
    alive: () => ended === undefined && ending === undefined,
    gone: gone.signal,
    received: () => received,
    end: () => (ending ??= end(connection, child, () => stop("Tackle stopped it"))),
  }
  return connection
}

/** Maximum number of characters of a message's header. */
const maxHeader = 1_000

/**
 * Returns a function that receives the output of a server. It returns the beginning of the first text that is neither a
 * header nor the content of a message. The reader of the messages would wait for the end of such a header.
 */
function createFrameCheck(): (bytes: Uint8Array) => string | undefined {
  let header = ""
  let content = 0
  return (bytes) => {
    for (let at = 0; at < bytes.length; ) {
      const skipped = Math.min(content, bytes.length - at)
      content -= skipped
      at += skipped
      const rest = Buffer.from(bytes.subarray(at, at + maxHeader)).toString("latin1")
      if (rest === "") return undefined
      const end = (header + rest).indexOf("\r\n\r\n")
      const isHeader = "content-".startsWith((header + rest).slice(0, 8).toLowerCase())
      if (!isHeader || (end === -1 && header.length + rest.length > maxHeader))
        return (header + rest).slice(0, 80)
      if (end === -1) {
        header += rest
        return undefined
      }
      at += end + 4 - header.length
      content = Number(/content-length: *(\d+)/i.exec((header + rest).slice(0, end))?.[1] ?? 0)
      header = ""
    }
    return undefined
  }
}

async function ask<T>(
  rpc: MessageConnection,
  request: { name: string; method: string; params: unknown; ms: number; signal: AbortSignal },
): Promise<T> {
  const { name, method, params, ms, signal } = request
  const { promise: stopped, reject } = Promise.withResolvers<never>()
  const cancellation = new CancellationTokenSource()
  const late = new TimeoutError(`${name} did not respond to ${method} within ${ms / 1000} s.`, ms)
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
    await connection.request("shutdown", undefined, { ms: shutdownMs, signal: new AbortController().signal })
    connection.notify("exit")
    await within(child.exited, shutdownMs)
  } catch {
    // Kill the process whether or not the shutdown succeeded.
  } finally {
    await killTree(child)
    stop()
  }
}

/** Kills the process and its children, then removes the record. */
async function killTree(child: RunningProcess): Promise<void> {
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

/** Thrown when no language server is available for a file. */
export class NoServerError extends TackleError {
  constructor(message: string) {
    super(message, { code: "lsp.unavailable", recoverable: true })
  }
}

/** Thrown when a server ends during a request. A later request can start the server again. */
export class ServerEndedError extends TackleError {
  constructor(server: string, why: string) {
    super(`The language server ${server} ended: ${why}`, { code: "lsp.ended", recoverable: true })
  }
}

/** Thrown when a server responds with an error, does not support the request, or cannot receive the file. */
export class ServerAnswerError extends TackleError {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "lsp.answer", recoverable: true, cause })
  }
}
