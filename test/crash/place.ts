import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readdirSync, readlinkSync } from "node:fs"
import { mkdtemp, realpath, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { type ModelServer, type Script, startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { replyTo } from "./task.ts"

/** The command of the repository. */
const command = resolve(import.meta.dirname, "../../bin/tackle")

/** Time in milliseconds after which a run counts as hanging and is killed. */
const patienceMs = 60_000

/** The environment of one crash: a project, a data directory, and a model that does the task. */
export interface Place extends AsyncDisposable {
  directory: string
  home: string
  data: string
  server: ModelServer
  /** False statements that the model received. */
  untruths: string[]
  /** Starts the real command in the project. `program` is a program that runs the command, with its first arguments. */
  start(args: readonly string[], program?: readonly string[]): Running
}

/** A running command. */
export interface Running {
  child: ChildProcess
  /** The output so far. */
  said: { stdout: string; stderr: string }
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

export interface PlaceOptions {
  /** Default: `off`. */
  sandbox?: "off" | "auto"
  /** Data directory shared with other places. It is not removed. */
  data?: string
  /** Replies of the model. Default: the model does the task. */
  script?: Script
}

export async function createPlace({ sandbox = "off", script, ...shared }: PlaceOptions = {}): Promise<Place> {
  const project = await temporaryProject()
  const home = await realpath(await mkdtemp(join(tmpdir(), "tackle-crash-")))
  const data = shared.data ?? join(home, "data")
  const { directory } = project
  const untruths: string[] = []
  const server = await startModelServer({
    script: script ?? ((request) => replyTo(request, directory, (what) => untruths.push(what))),
  })
  const config = {
    model: "test/m",
    sandbox,
    experimental: { batch_tool: true },
    provider: { test: { options: { baseURL: server.url, apiKey: "k" }, models: { m: {}, "gpt-5": {} } } },
    agent: { general: { model: "test/gpt-5" } },
  }
  const env = {
    PATH: process.env.PATH ?? "/usr/bin:/bin",
    HOME: home,
    XDG_CONFIG_HOME: join(home, "config"),
    XDG_DATA_HOME: join(home, "share"),
    TACKLE_DATA_DIR: data,
    TACKLE_CONFIG_CONTENT: JSON.stringify(config),
  }
  const children = new Set<ChildProcess>()
  return {
    directory,
    home,
    data,
    server,
    untruths,
    start(args, program = []) {
      const [file = command, ...rest] = [...program, command, ...args]
      const child = spawn(file, rest, { cwd: directory, env, stdio: ["ignore", "pipe", "pipe"] })
      children.add(child)
      const said = { stdout: "", stderr: "" }
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        said.stdout += text
      })
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        said.stderr += text
      })
      const timer = setTimeout(() => {
        for (const { pid } of processesIn(directory)) killIfThere(pid)
        child.kill("SIGKILL")
      }, patienceMs)
      const ended = once(child, "close").then(([code, signal]) => {
        clearTimeout(timer)
        return { code, signal }
      })
      return { child, said, ended }
    },
    async [Symbol.asyncDispose]() {
      for (const child of children) child.kill("SIGKILL")
      for (const { pid } of processesIn(directory)) killIfThere(pid)
      await server.close()
      await project.remove()
      await rm(home, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

/** Returns the processes whose working directory is in the project: every command that the engine started. */
export function processesIn(directory: string): { pid: number }[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const at = readlinkSync(`/proc/${name}/cwd`)
        return at === directory || at.startsWith(`${directory}/`) ? [{ pid: Number(name) }] : []
      } catch {
        // The process has ended in the meantime, or is a zombie.
        return []
      }
    })
}

/** Kills a process. Does nothing if the process has ended. */
export function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL")
  } catch {
    // The process has already ended.
  }
}

/** Waits up to 10 s for a condition, and checks it every 10 ms. Returns false if the condition does not become true. */
export async function comesTrue(condition: () => boolean | Promise<boolean>): Promise<boolean> {
  for (const deadline = Date.now() + 10_000; Date.now() < deadline; await delay(10)) {
    if (await condition()) return true
  }
  return false
}
