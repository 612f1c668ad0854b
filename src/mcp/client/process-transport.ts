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

/** Time for a server to exit after its input ends, in milliseconds. Then it is killed. */
const shutdownMs = 500

/** Length of the end of stderr that an error shows, in characters. */
const shownErrors = 1_000

/**
 * Runs the program in its own process group; closing ends the whole group. Output that is not a message is skipped: many
 * servers print a welcome line to stdout. `start` throws `SpawnError` or `PipeError`.
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
      // The line is longer than a message may be.
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
      // Neither rejects.
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
