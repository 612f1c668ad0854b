import { type ChildProcess, spawn } from "node:child_process"
import { statfsSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { delimiter, dirname, join, resolve } from "node:path"
import { expect, onTestFinished } from "vitest"
import type { EventOf, EventType, TackleEvent } from "../../src/event/events.ts"
import { type ModelServer, type Script, startModelServer } from "../../src/testing/model-server.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"
import { isComplete } from "../runs.ts"
import { type Ended, runShared } from "./run-shared.ts"

/** The command of the repository. */
export const tackleCommand = resolve(import.meta.dirname, "../../bin/tackle")

/** A running command, with its output so far. */
export interface Started extends Ended {
  child: ChildProcess
  ended: Promise<Ended>
}

export interface StartOptions {
  cwd?: string
  /** Added to the isolated environment; undefined removes a variable. */
  env?: Record<string, string | undefined>
  /** A text; or `open`, which never sends anything and never ends. Default: closed. */
  stdin?: string | { open: true }
  /** The program instead of `bin/tackle`, with its first arguments. */
  command?: [string, ...string[]]
  /** Kills a command that does not end, after this many milliseconds. Default 25 s. */
  timeoutMs?: number
}

/** A user's machine: a project, a home, a data directory and a scripted model. All of it is removed with the test. */
export interface Machine {
  project: TemporaryProject
  home: string
  data: string
  server: ModelServer
  env: Record<string, string>
  /** Starts a command in a process of its own. */
  start(args: readonly string[], options?: StartOptions): Started
  /**
   * Runs a command in a process that tests share, where each command waits for the commands before it. In CI and after
   * `useOwnProcesses`, the command has a process of its own and does not wait.
   */
  run(args: readonly string[], options?: StartOptions): Promise<Ended>
  /** Trusts all items of the project. */
  trust(): Promise<void>
}

export interface MachineOptions {
  files?: Record<string, string>
  git?: boolean
  script?: Script
  /** Merged over the config that names the scripted model as `test/m`. Null: no config at all. */
  config?: Record<string, unknown> | null
}

let sharesProcess = !isComplete

/**
 * Gives each command of the running test its own process. Needed if the test is about the process, or changes code that
 * a process loads only once.
 */
export function useOwnProcesses(): void {
  sharesProcess = false
  onTestFinished(() => {
    sharesProcess = !isComplete
  })
}

/** Where homes are created: in memory if there is space, because each command waits several times for the disk. */
const homes = freeBytes("/dev/shm") > 2 * 1024 ** 3 ? "/dev/shm" : tmpdir()

function freeBytes(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(path)
    return bavail * bsize
  } catch {
    return 0
  }
}

export async function createMachine(options: MachineOptions = {}): Promise<Machine> {
  const project = await temporaryProject(options.files ?? {}, { git: options.git ?? false })
  const home = await mkdtemp(join(homes, "tackle-home-"))
  const server = await startModelServer({ script: options.script ?? [] })
  onTestFinished(async () => {
    await server.close()
    await project.remove()
    await rm(home, { recursive: true, force: true, maxRetries: 3 })
  })
  const data = join(home, "data")
  const env = {
    PATH: `${dirname(tackleCommand)}${delimiter}${process.env.PATH ?? "/usr/bin:/bin"}`,
    HOME: home,
    XDG_CONFIG_HOME: join(home, "config"),
    XDG_DATA_HOME: join(home, "share"),
    TACKLE_DATA_DIR: data,
    ...(options.config === null
      ? {}
      : { TACKLE_CONFIG_CONTENT: JSON.stringify({ ...modelConfig(server.url), ...options.config }) }),
  }
  const start = (args: readonly string[], given: StartOptions = {}) =>
    startTackle(args, { cwd: project.directory, ...given, env: { ...env, ...given.env } })
  async function run(args: readonly string[], options: StartOptions = {}): Promise<Ended> {
    const { command, stdin, timeoutMs = 25_000, cwd = project.directory } = options
    const canShare = sharesProcess && !command && stdin === undefined
    const request = { args, cwd, env: { ...env, ...options.env } }
    return canShare ? runShared(request, timeoutMs) : start(args, options).ended
  }
  async function trust(): Promise<void> {
    expect(await run(["trust", "--yes"])).toMatchObject({ code: 0 })
  }
  return { project, home, data, server, env, start, run, trust }
}

/** Runs `tackle doctor` without its sandbox checks, which start dozens of programs. */
export function runDoctor(machine: Machine, ...flags: string[]): Promise<Ended> {
  const config = JSON.parse(machine.env.TACKLE_CONFIG_CONTENT ?? "{}")
  const env = { TACKLE_CONFIG_CONTENT: JSON.stringify({ ...config, sandbox: "off" }) }
  return machine.run(["doctor", ...flags], { env })
}

/** Config whose model is `test/m` at the URL. */
export function modelConfig(url: string): Record<string, unknown> {
  return {
    model: "test/m",
    provider: { test: { options: { baseURL: url, apiKey: "k" }, models: { m: {} } } },
  }
}

function startTackle(args: readonly string[], options: StartOptions): Started {
  const [program, ...first] = options.command ?? [tackleCommand]
  const child = spawn(program, [...first, ...args], {
    cwd: options.cwd,
    env: options.env,
    stdio: [options.stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  })
  const { promise, resolve: resolveEnded, reject } = Promise.withResolvers<Ended>()
  const started: Started = { child, code: null, signal: null, stdout: "", stderr: "", ended: promise }
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    started.stdout += text
  })
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    started.stderr += text
  })
  // Ignores the error of a command that closes its input unread.
  child.stdin?.on("error", () => {})
  if (typeof options.stdin === "string") child.stdin?.end(options.stdin)
  const timer = setTimeout(() => child.kill("SIGKILL"), options.timeoutMs ?? 25_000)
  onTestFinished(() => {
    child.kill("SIGKILL")
  })
  child.once("error", reject)
  child.once("close", (code, signal) => {
    clearTimeout(timer)
    Object.assign(started, { code, signal })
    resolveEnded(started)
  })
  return started
}

/** Checks every 20 ms until the condition holds, for at most `limitSeconds`. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitSeconds = 20,
): Promise<void> {
  const deadline = Date.now() + limitSeconds * 1_000
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`Timed out waiting for: ${what}.`)
    await new Promise((next) => setTimeout(next, 20))
  }
}

/** Returns the events of a run in JSON mode, and checks that nothing else was printed and the last one is the end. */
export function eventsOf(run: Ended): TackleEvent[] {
  const lines = run.stdout.split("\n")
  expect(lines.pop(), "stdout ends with a newline").toBe("")
  const events = lines.map((line) => JSON.parse(line) as TackleEvent)
  for (const event of events) {
    expect(event).toMatchObject({
      type: expect.any(String),
      time: expect.any(Number),
      sessionID: expect.any(String),
    })
  }
  expect(events.at(-1)?.type, run.stderr).toBe("run.completed")
  expect(events.filter(({ type }) => type === "run.completed")).toHaveLength(1)
  return events
}

/** Returns the events of one type. */
export function only<T extends EventType>(events: readonly TackleEvent[], type: T): EventOf<T>[] {
  return events.filter((event): event is EventOf<T> => event.type === type)
}

/** Returns the last event of a run in JSON mode, and checks it against the exit code of the process. */
export function endOf(run: Ended): EventOf<"run.completed"> {
  const [end] = only(eventsOf(run), "run.completed")
  if (!end) throw new Error("There is no run.completed.")
  expect(run.code).toBe(end.exitCode)
  return end
}

/** Returns the last state of every call, in order: `["read", "completed", "…output or error…"]`. */
export function callsOf(run: Ended): [tool: string, status: string, text: string][] {
  const calls = new Map<string, [string, string, string]>()
  for (const { part } of only(eventsOf(run), "part.updated")) {
    if (part.type !== "tool") continue
    const { state } = part
    const text = state.status === "completed" ? state.output : state.status === "error" ? state.error : ""
    calls.set(part.id, [part.tool, state.status, text])
  }
  return [...calls.values()]
}
