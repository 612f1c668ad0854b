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
let endOfOutput: string | undefined

process.on("message", start)
process.on("beforeExit", () => end())
process.on("disconnect", () => exit())

function start({ args, cwd, env, ...request }: CommandRequest): void {
  endOfOutput = request.endOfOutput
  process.chdir(cwd)
  for (const name of Object.keys(process.env)) delete process.env[name]
  for (const [name, value] of Object.entries(env)) if (value !== undefined) process.env[name] = value
  process.argv = [process.execPath, resolve(root, "bin/tackle"), ...args]
  process.exitCode = undefined
  process.exit = (code) => end(code) as never
  // A command that does not call `process.exit` ends when it has nothing left to wait for.
  process.channel?.unref()
  delete require.cache[entry]
  require(entry)
}

/** Does what Node does at the end of a process, and reports the exit code. */
function end(code: number | string | null = process.exitCode ?? 0): void {
  if (endOfOutput === undefined) return
  process.channel?.ref()
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
  endOfOutput = undefined
  process.send?.(Number(process.exitCode))
}
