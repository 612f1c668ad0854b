import { spawn } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { mkdir } from "node:fs/promises"
import { setTimeout as delay } from "node:timers/promises"
import { systemCode } from "../src/util/errors.ts"
import { baseEnvironment, RunError } from "./run-subject.ts"
import type { Launch } from "./subject.ts"

/** A program on a pseudoterminal of 100 columns and 30 rows. */
export interface PtyProgram extends AsyncDisposable {
  /** Time at which the program was started, in ms of `performance.now()`. */
  readonly started: number
  /** All bytes that the program has written, as Latin-1 text. */
  readonly output: string
  /** Types text. */
  type(text: string): void
  /**
   * Waits until the output after `from` characters contains the text. Resolves with the time. Throws {@link RunError}
   * if the text does not appear within `limitMs`.
   */
  sees(text: string, options?: { from?: number; limitMs?: number }): Promise<number>
  /** Resolves with the time at which the program ended. */
  readonly ended: Promise<number>
  /** Returns the program's CPU time in ms. Linux only. */
  cpuMs(): number
  /** Returns the program's peak resident memory in bytes. Linux only. */
  peakBytes(): number
}

/**
 * Starts a program on a pseudoterminal with `script` from util-linux. The shell in between announces its process id,
 * and then becomes the program, so that neither `script` nor the shell delays the measurement.
 */
export async function startOnPty(
  { command, args, env }: Launch,
  { home, directory }: { home: string; directory: string },
): Promise<PtyProgram> {
  await mkdir(home, { recursive: true })
  const words = [command, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ")
  const child = spawn(
    "script",
    ["-qfec", `stty cols 100 rows 30 -echo; printf '<%d>' $$; exec ${words}`, "/dev/null"],
    {
      cwd: directory,
      env: { ...baseEnvironment({ home, directory }), TERM: "xterm-256color", SHELL: "/bin/sh", ...env },
      stdio: ["pipe", "pipe", "ignore"],
    },
  )
  let output = ""
  const waiting = new Set<() => void>()
  child.stdout.setEncoding("latin1").on("data", (data: string) => {
    output += data
    for (const check of waiting) check()
  })
  child.stdin.on("error", () => {})
  const exited = new Promise<void>((resolve, reject) => {
    child.once("error", (error) => reject(new RunError(`no pseudoterminal: ${error.message}`)))
    child.once("close", () => resolve())
  })
  exited.catch(() => {})
  const ended = exited.then(() => performance.now())
  ended.catch(() => {})

  async function sees(text: string, { from = 0, limitMs = 20_000 } = {}): Promise<number> {
    const found = Promise.withResolvers<number>()
    const check = () => {
      if (output.includes(text, from)) found.resolve(performance.now())
    }
    waiting.add(check)
    check()
    const leave = new AbortController()
    const late = delay(limitMs, "late" as const, { signal: leave.signal })
    late.catch(() => {})
    try {
      const time = await Promise.race([found.promise, late])
      if (time !== "late") return time
      throw new RunError(`did not show ${JSON.stringify(text)}: ${JSON.stringify(output.slice(-300))}`)
    } finally {
      leave.abort()
      waiting.delete(check)
    }
  }

  await Promise.race([sees(">"), exited])
  const started = performance.now()
  const pid = Number(/<(\d+)>/.exec(output)?.[1])
  output = output.slice(output.indexOf(">") + 1)

  return {
    started,
    get output() {
      return output
    },
    type: (text) => void child.stdin.write(text),
    sees,
    ended,
    cpuMs() {
      const threads = readdirSync(`/proc/${pid}/task`)
      const times = threads.map(
        (id) => readFileSync(`/proc/${pid}/task/${id}/schedstat`, "utf8").split(" ")[0],
      )
      return times.reduce((sum, time) => sum + Number(time) / 1e6, 0)
    },
    peakBytes: () =>
      Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024,
    async [Symbol.asyncDispose]() {
      // A program that ends by itself stores its compile cache for the next start.
      signal("SIGTERM")
      const late = setTimeout(() => signal("SIGKILL"), endMs)
      await exited.catch(() => {})
      clearTimeout(late)
      child.stdin.end()
    },
  }

  function signal(name: "SIGTERM" | "SIGKILL"): void {
    try {
      process.kill(pid, name)
    } catch (error) {
      if (systemCode(error) !== "ESRCH") throw error
    }
  }
}

/** Time in ms that a program has to end after SIGTERM. */
const endMs = 3_000
