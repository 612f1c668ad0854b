import { type JSONRPCMessage, ReadBuffer, serializeMessage } from "@modelcontextprotocol/client"
import { within } from "../../util/abort.ts"
import { errorMessage } from "../../util/errors.ts"
import { type RecordTree, type RunningProcess, startProcess } from "../../util/process.ts"
import type { ServerTransport } from "./transport.ts"

/** A program that speaks the protocol on its standard input and output. */
export interface ProgramOptions {
  argv: readonly [string, ...string[]]
  cwd: string
  env: Readonly<Record<string, string | undefined>>
  record: RecordTree
}

/** A well-behaved server ends when its input does; one that does not is ended all the same. In milliseconds. */
const goodbyeMs = 500

/** So much of the end of standard error is shown when a server ended, in characters. */
const shownErrors = 1_000

/**
 * The program in a process group of its own, which ends with all that it started. What it writes that is no message is
 * passed over: many servers greet on standard output. `start` throws `SpawnError` or `PipeError`.
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
      // A line without an end, longer than any message may be.
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
    await within(running.exited, goodbyeMs)
    await running.kill()
    stop("it was told to end")
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
        await within(running.closed, goodbyeMs)
        if (ending === undefined) await running.kill()
        running.removeRecords()
        stop(signal ? `it was ended by ${signal}` : `it exited with code ${code}`)
      })
    },
    async send(message: JSONRPCMessage) {
      if (ended !== undefined || !child?.input) throw new Error(`the server does not run: ${ended ?? ""}`)
      await child.input.write(serializeMessage(message))
    },
    async close() {
      if (!child) return
      ending ??= end(child)
      await ending
    },
    explain: (error) =>
      [ended ?? errorMessage(error), errors.trim()].filter(Boolean).join(". Its last words:\n"),
    isLost: () => ended !== undefined,
    isForeign: () => false,
  }
  return transport
}
