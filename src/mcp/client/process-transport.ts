import { StringDecoder } from "node:string_decoder"
import { type JSONRPCMessage, serializeMessage } from "@modelcontextprotocol/client"
import { createLineSplitter } from "../../files/line-splitter.ts"
import { within } from "../../util/abort.ts"
import { errorMessage } from "../../util/errors.ts"
import { type RecordTree, type RunningProcess, startProcess } from "../../util/process.ts"
import { createOpenRequests, maxMessageLength } from "./open-requests.ts"
import type { ServerTransport } from "./transport.ts"

/** A program that speaks the protocol on stdin and stdout. */
export interface ProgramOptions {
  argv: readonly [string, ...string[]]
  cwd: string
  env: Readonly<Record<string, string | undefined>>
  record: RecordTree
}

/** Time in milliseconds that a server has to exit after its input ends. After this time, it is killed. */
const shutdownMs = 500

/** Maximum number of characters of stderr that an error message shows, counted from the end. */
const shownErrors = 1_000

/**
 * Creates a transport that runs the program in its own process group. Closing the transport ends the whole group. Skips
 * output that is not a message, because many servers print a welcome line to stdout. A message that is too long fails
 * only its request. `start` throws `SpawnError` or `PipeError`.
 */
export function createProcessTransport(options: ProgramOptions): ServerTransport {
  const decoder = new StringDecoder()
  const requests = createOpenRequests()
  const lines = createLineSplitter(maxMessageLength, (line, length) => {
    const message = requests.read(line) ?? requests.reject(line, length)
    if (message) transport.onmessage?.(message)
  })
  let child: RunningProcess | undefined
  let errors = ""
  let ended: string | undefined
  let ending: Promise<void> | undefined

  function stop(why: string): void {
    if (ended !== undefined) return
    ended = why
    transport.onclose?.()
  }

  async function end(running: RunningProcess): Promise<void> {
    running.input?.end()
    await within(running.exited, shutdownMs)
    await running.kill()
    stop("Tackle stopped it")
  }

  const transport: ServerTransport = {
    async start() {
      const running = await startProcess({
        argv: options.argv,
        cwd: options.cwd,
        env: options.env,
        input: true,
        record: options.record,
        onOutput: (bytes) => lines.push(decoder.write(bytes)),
        onErrorOutput(bytes) {
          errors = (errors + Buffer.from(bytes).toString()).slice(-shownErrors)
        },
      })
      child = running
      // A server that closes its output cannot answer any more, even if it still runs. None of these promises rejects.
      void running.outputEnded.then(async () => {
        if (await within(running.exited, shutdownMs)) return
        stop("it closed its output")
        await transport.close()
      })
      void running.exited.then(async ({ code, signal }) => {
        await within(running.closed, shutdownMs)
        if (ending === undefined) await running.kill()
        running.removeRecords()
        stop(signal ? `${signal} ended it` : `it exited with code ${code}`)
      })
    },
    async send(message: JSONRPCMessage) {
      if (ended !== undefined || !child?.input) throw new Error(`the server is not running: ${ended ?? ""}`)
      requests.sent(message)
      await child.input.write(serializeMessage(message))
    },
    async close() {
      if (!child) return
      ending ??= end(child)
      await ending
    },
    explain: (error) =>
      [ended ?? errorMessage(error), errors.trim()].filter(Boolean).join(". The end of its stderr:\n"),
    isLost: () => ended !== undefined,
    isUnsupported: () => false,
  }
  return transport
}
