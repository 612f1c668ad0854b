import { type JSONRPCMessage, ReadBuffer, serializeMessage } from "@modelcontextprotocol/client"
import { within } from "../../util/abort.ts"
import { errorMessage } from "../../util/errors.ts"
import { type RecordTree, type RunningProcess, startProcess } from "../../util/process.ts"
import type { ServerTransport } from "./transport.ts"

/** A program that speaks the protocol on stdin and stdout. */
export interface ProgramOptions {
  argv: readonly [string, ...string[]]
  cwd: string
  env: Readonly<Record<string, string | undefined>>
  record: RecordTree
}

/** Time in milliseconds that a server has to exit after its input ends. Then it is killed. */
const shutdownMs = 500

/** Maximum number of characters of stderr that an error message shows, counted from the end. */
const shownErrors = 1_000

/**
 * Creates a transport that runs the program in its own process group. Closing the transport ends the whole group. Skips
 * output that is not a message, because many servers print a welcome line to stdout. `start` throws `SpawnError` or
 * `PipeError`.
 */
export function createProcessTransport(options: ProgramOptions): ServerTransport {
  const buffer = new ReadBuffer()
  let child: RunningProcess | undefined
  let errors = ""
  let ended: string | undefined
  let ending: Promise<void> | undefined

  function readMessages(): void {
    for (;;) {
      try {
        const message = buffer.readMessage()
        if (message === null) return
        transport.onmessage?.(message)
      } catch (error) {
        transport.onerror?.(error instanceof Error ? error : new Error(String(error)))
      }
    }
  }

  function receive(bytes: Uint8Array): void {
    try {
      buffer.append(Buffer.from(bytes))
    } catch (error) {
      // The line exceeds the maximum length of a message.
      transport.onerror?.(error instanceof Error ? error : new Error(String(error)))
      void transport.close()
      return
    }
    readMessages()
  }

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
        onOutput: receive,
        onErrorOutput(bytes) {
          errors = (errors + Buffer.from(bytes).toString()).slice(-shownErrors)
        },
      })
      child = running
      // Neither `exited` nor `closed` rejects.
      void running.exited.then(async ({ code, signal }) => {
        await within(running.closed, shutdownMs)
        if (ending === undefined) await running.kill()
        running.removeRecords()
        stop(signal ? `${signal} ended it` : `it exited with code ${code}`)
      })
    },
    async send(message: JSONRPCMessage) {
      if (ended !== undefined || !child?.input) throw new Error(`the server is not running: ${ended ?? ""}`)
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
