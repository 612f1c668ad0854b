/**
 * Runs commands one after the other, each like a process of its own. Loads the entry point of the command again for each
 * command. All other modules stay loaded and compiled.
 */
import { createRequire } from "node:module"
import { resolve } from "node:path"
import type { CommandRequest } from "./run-shared.ts"

const require = createRequire(import.meta.url)
const root = resolve(import.meta.dirname, "../..")
const entry = resolve(root, "dist/cli/main.cjs")

const exit = process.exit.bind(process)
const writes = [process.stdout.write, process.stderr.write] as const

/** Time in milliseconds for a command to close its timers and sockets after it has ended. */
const closingMs = 200

/** The running command. */
let current: CommandRequest | undefined
/** Ends the process if the last command left a timer or a socket open. */
let closing: NodeJS.Timeout | undefined

process.on("message", start)
process.on("beforeExit", () => {
  end(process.exitCode)
  clearTimeout(closing)
  // Nothing is left of the command, so the next command can run in this process.
  process.channel?.ref()
  process.send?.(process.exitCode)
})
process.on("disconnect", () => exit())

function start(request: CommandRequest): void {
  const { args, cwd, env } = request
  current = request
  process.chdir(cwd)
  for (const name of Object.keys(process.env)) delete process.env[name]
  for (const [name, value] of Object.entries(env)) if (value !== undefined) process.env[name] = value
  process.argv = [process.execPath, resolve(root, "bin/tackle"), ...args]
  process.exitCode = undefined
  process.exit = (code) => end(code ?? process.exitCode) as never
  process.channel?.unref()
  delete require.cache[entry]
  require(entry)
}

/** Does what Node does at the end of a process. */
function end(code: number | string | null | undefined): void {
  if (!current) return
  const { endOfOutput } = current
  current = undefined
  process.exitCode = code ?? 0
  for (const listener of process.listeners("exit")) {
    process.off("exit", listener)
    listener.call(process, Number(process.exitCode))
  }
  process.chdir("/")
  const [writeOut, writeError] = writes
  process.stdout.write = writeOut
  process.stderr.write = writeError
  process.stdout.write(endOfOutput)
  process.stderr.write(endOfOutput)
  closing = setTimeout(() => exit(), closingMs).unref()
}
