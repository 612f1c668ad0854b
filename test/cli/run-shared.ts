import { fork } from "node:child_process"
import { join } from "node:path"
import { onTestFinished } from "vitest"

/** How a command ended. One of `code` and `signal` is set. */
export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

/** A command for the shared process. */
export interface CommandRequest {
  args: readonly string[]
  cwd: string
  /** The only environment variables of the command. */
  env: Record<string, string | undefined>
  /** Text that follows the output in stdout and in stderr. */
  endOfOutput: string
}

/** A process that runs one command at a time. */
interface SharedProcess {
  /** Runs a command. The signal kills it. */
  run(request: Omit<CommandRequest, "endOfOutput">, signal: AbortSignal): Promise<Ended>
}

let shared: SharedProcess | undefined
/** Resolves when all commands so far have ended. */
let last: Promise<unknown> = Promise.resolve()

/**
 * Runs a command in a process that all tests of this worker share. The program is already loaded and compiled there, so
 * that a command needs 15 ms instead of 220 ms. Commands run one after the other. A command is killed after `timeoutMs`,
 * and when the test has finished.
 */
export function runShared(request: Omit<CommandRequest, "endOfOutput">, timeoutMs: number): Promise<Ended> {
  const stop = new AbortController()
  onTestFinished(() => stop.abort())
  const ended = last.then(async () => {
    stop.signal.throwIfAborted()
    const timer = setTimeout(() => stop.abort(), timeoutMs)
    shared ??= startSharedProcess(() => (shared = undefined))
    return await shared.run(request, stop.signal).finally(() => clearTimeout(timer))
  })
  last = Promise.allSettled([ended])
  return ended
}

function startSharedProcess(onEnd: () => void): SharedProcess {
  const endOfOutput = "\0end of output\0"
  const child = fork(join(import.meta.dirname, "shared-process.ts"), {
    execArgv: [],
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  })
  child.unref()
  let output = { stdout: "", stderr: "" }
  let code: number | undefined
  let onEnded: ((ended: Ended) => void) | undefined

  function finish(ended: Pick<Ended, "code" | "signal">): void {
    const [stdout, stderr] = [output.stdout, output.stderr].map((text) => text.replace(endOfOutput, ""))
    onEnded?.({ ...ended, stdout: stdout ?? "", stderr: stderr ?? "" })
  }
  function finishIfComplete(): void {
    const isComplete = Object.values(output).every((text) => text.endsWith(endOfOutput))
    if (code !== undefined && isComplete) finish({ code, signal: null })
  }
  for (const name of ["stdout", "stderr"] as const)
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      output[name] += text
      finishIfComplete()
    })
  child.on("message", (reported) => {
    code = Number(reported)
    finishIfComplete()
  })
  // A command that leaves a timer or a socket open ends the process.
  child.once("close", (exitCode, signal) => {
    onEnd()
    finish({ code: exitCode, signal })
  })

  return {
    async run(request, signal) {
      const { promise, resolve } = Promise.withResolvers<Ended>()
      const kill = () => child.kill("SIGKILL")
      signal.addEventListener("abort", kill)
      onEnded = resolve
      output = { stdout: "", stderr: "" }
      code = undefined
      child.send({ ...request, endOfOutput } satisfies CommandRequest)
      const ended = await promise
      signal.removeEventListener("abort", kill)
      return ended
    },
  }
}
