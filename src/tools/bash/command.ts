import { existsSync } from "node:fs"
import { setTimeout as delay } from "node:timers/promises"
import { startConfined } from "../../sandbox/sandbox.ts"
import type { ToolContext } from "../../tool/context.ts"
import { within } from "../../util/abort.ts"
import { type Exit, type RecordTree, type RunningProcess, startProcess } from "../../util/process.ts"
import { counted } from "../../util/words.ts"

/** A command and how to start it. */
export interface ShellCommand {
  text: string
  argv: readonly [string, ...string[]]
  env: Readonly<Record<string, string | undefined>>
  cwd: string
  /** Whether the command runs outside the sandbox. If true, permission has been granted. */
  outside: boolean
  /** Whether the input stays open. If true, the command becomes a job if it is still running after one second. */
  stdin: boolean
}

/**
 * Returns the program and environment for a command. The default shell is bash if installed, otherwise `sh`. With `-c`,
 * these shells do not read a profile. The variable `BASH_ENV` is removed, because bash would run the file that it
 * names.
 */
export function shellCommand(
  command: string,
  options: { shell?: string; environment: Readonly<Record<string, string | undefined>> },
): Pick<ShellCommand, "argv" | "env"> {
  const shell = options.shell ?? (existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh")
  return { argv: [shell, "-c", command], env: { ...options.environment, BASH_ENV: undefined } }
}

/** A running command. */
export interface StartedCommand {
  process: RunningProcess
  sandboxed: boolean
  /** Releases the command's sandbox. Call it when the command has ended. Returns a note for the model, if any. */
  ended(): string | undefined
}

/**
 * Starts a command. The command runs in the sandbox, unless it has permission to run outside it or no sandbox is
 * active. Throws `SpawnError`, `PipeError` or `SandboxError` if the command cannot be started.
 */
export async function startCommand(
  { text, argv, env, cwd, outside, stdin }: ShellCommand,
  { sandbox }: Pick<ToolContext, "sandbox">,
  { onOutput, record }: { onOutput: (bytes: Uint8Array) => void; record: RecordTree | undefined },
): Promise<StartedCommand> {
  const confined = outside ? undefined : await sandbox?.confine({ text, argv, env, cwd })
  if (!confined) {
    const process = await startProcess({ argv, cwd, env, onOutput, input: stdin, record })
    return { process, sandboxed: false, ended: () => undefined }
  }
  try {
    const process = await startConfined(confined, onOutput, { input: stdin, record })
    return { process, sandboxed: true, ended: confined.ended }
  } catch (error) {
    confined.ended()
    throw error
  }
}

/** The reason why waiting for a command ended. */
export type Ending =
  /** The shell exited. `continues` is true if processes that the shell started are still running. */
  | { cause: "exit"; exit: Exit; continues: boolean }
  /** The process tree was killed. */
  | { cause: "timeout" | "abort" }
  /** The command is still running and becomes a job. */
  | { cause: "handed-over" }

interface WaitLimits {
  timeoutMs: number
  signal: AbortSignal
  /** Time in milliseconds after which to stop waiting and leave the process running. */
  handOverMs?: number
}

/**
 * Minimum and maximum time in milliseconds for remaining processes, such as `tee` in `> >(tee log)`, to end or to write
 * their last output. Between these limits, the time is twice the shell's run time, because a slow machine delays the
 * remaining processes too. The time is short, because every command with a background process (`server &`) waits the
 * full time.
 */
const drainMs = { least: 50, most: 500 }
const pollMs = 5

/**
 * Waits until the shell itself exits, even if other processes keep its output open. Kills the process tree on timeout
 * or abort. After `handOverMs`, stops waiting and leaves the process running.
 */
export async function supervise(process: RunningProcess, limits: WaitLimits): Promise<Ending> {
  const start = performance.now()
  const first = await firstOf(process, limits)
  if (first === "handed-over") return { cause: first }
  if (typeof first === "object") {
    const waitMs = Math.min(Math.max(2 * (performance.now() - start), drainMs.least), drainMs.most)
    return { cause: "exit", exit: first, continues: await stillRunning(process, waitMs) }
  }
  await process.kill()
  return { cause: first }
}

async function firstOf(
  process: RunningProcess,
  { timeoutMs, signal, handOverMs }: WaitLimits,
): Promise<Exit | "timeout" | "abort" | "handed-over"> {
  const { promise: cut, resolve } = Promise.withResolvers<"timeout" | "abort" | "handed-over">()
  const timer = setTimeout(resolve, timeoutMs, "timeout")
  const handOver = handOverMs === undefined ? undefined : setTimeout(resolve, handOverMs, "handed-over")
  const onAbort = () => resolve("abort")
  signal.addEventListener("abort", onAbort, { once: true })
  if (signal.aborted) onAbort()
  try {
    return await Promise.race([process.exited, cut])
  } finally {
    clearTimeout(timer)
    clearTimeout(handOver)
    signal.removeEventListener("abort", onAbort)
  }
}

async function stillRunning(process: RunningProcess, waitMs: number): Promise<boolean> {
  const deadline = performance.now() + waitMs
  await within(process.closed, waitMs)
  // A process that has just closed its output may take a moment to exit.
  while (process.running() && performance.now() < deadline) await delay(pollMs)
  return process.running()
}

/**
 * Returns the output for the model. The result is never empty, so that the model does not take missing output for an
 * error.
 */
export function describeOutput(text: string, bytes: number): string {
  if (text !== "") return text.endsWith("\n") ? text.slice(0, -1) : text
  return bytes === 0 ? "(no output)" : `(${counted(bytes, "byte")}, no printable text)`
}
