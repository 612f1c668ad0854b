import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { setTimeout as delay } from "node:timers/promises"
import pg from "pg"
import { createClient, type TackleClient } from "../../src/client/index.ts"
import { migratePostgres } from "../../src/store/postgres.ts"
import { type PostgresServer, startPostgres } from "../../test/postgres-server.ts"

/** A `tackle` process. */
interface Started {
  child: ChildProcess
  /** Sends a signal and waits until the process has ended. */
  end(signal: NodeJS.Signals): Promise<void>
}

/** PostgreSQL, servers that run no sessions, and workers, with one project. */
export interface Cluster {
  postgres: PostgresServer
  /** Directories of the projects. Each has a file `input.txt` and an empty directory `effects`. */
  projects: string[]
  /** Returns a client of one of the servers for a project. Both are numbered from 0, and the numbers wrap around. */
  client(server: number, project: number): TackleClient
  workers: Started[]
  startWorker(): Promise<Started>
  /** Kills a server with SIGKILL, and starts it again after `pauseMs` with the same port and data directory. */
  crashServer(index: number, pauseMs: number): Promise<void>
  /** Runs a statement as the superuser. */
  query(text: string): Promise<Record<string, unknown>[]>
  close(): Promise<void>
}

/** Options for {@link startCluster}. */
export interface ClusterOptions {
  /** Path of the command to measure. */
  command: string
  /** Base URL of the model server, with `/v1`. */
  modelUrl: string
  servers: number
  workers: number
  projects: number
  /** Number of sessions that a worker runs at once. Default: the command's default. */
  concurrency?: number | undefined
}

/** Starts a cluster. PostgreSQL syncs each commit to the disk. */
export async function startCluster({
  command,
  modelUrl,
  servers,
  workers: count,
  projects: projectCount,
  concurrency,
}: ClusterOptions): Promise<Cluster> {
  const postgres = await startPostgres({ isDurable: true })
  await migratePostgres(postgres.url())
  const home = realpathSync(mkdtempSync(join(tmpdir(), "tackle-scale-")))
  const root = join(home, "projects")
  const projects = Array.from({ length: projectCount }, (_, index) => join(root, String(index)))
  for (const project of projects) {
    mkdirSync(join(project, "effects"), { recursive: true })
    writeFileSync(join(project, "input.txt"), "one line\n".repeat(20))
  }
  const config = {
    sandbox: "off",
    permission: { "*": "allow" },
    model: "bench/m",
    provider: { bench: { options: { baseURL: modelUrl, apiKey: "k" }, models: { m: {} } } },
  }
  const workers: Started[] = []
  const all: Started[] = []
  let machines = 0

  /** Starts a command that prints a line of JSON when it is ready, with a new data directory by default. */
  async function start(
    args: string[],
    machine = ++machines,
  ): Promise<{ started: Started; line: Record<string, string>; machine: number }> {
    const child = spawn(command, [...args, "--json"], {
      cwd: root,
      env: {
        PATH: process.env.PATH,
        HOME: home,
        TACKLE_DATA_DIR: join(home, `data-${machine}`),
        TACKLE_DATABASE: postgres.url(),
        TACKLE_CONFIG_CONTENT: JSON.stringify(config),
      },
      stdio: ["ignore", "pipe", process.env.TACKLE_BENCH_VERBOSE ? "inherit" : "ignore"],
    })
    const exited = once(child, "exit")
    const lines = createInterface({ input: child.stdout ?? process.stdin })
    const first = await Promise.race([
      once(lines, "line").then(([text]) => JSON.parse(String(text)) as Record<string, string>),
      exited.then(() => {
        throw new Error(`tackle ${args[0]} ended with code ${child.exitCode}.`)
      }),
    ])
    const started: Started = {
      child,
      async end(signal) {
        if (child.exitCode === null && child.signalCode === null) child.kill(signal)
        await exited
      },
    }
    all.push(started)
    return { started, line: first, machine }
  }

  async function startWorker(): Promise<Started> {
    const limit = concurrency === undefined ? [] : ["--concurrency", String(concurrency)]
    const { started } = await start(["worker", ...limit, "--grace", "1"])
    workers.push(started)
    return started
  }

  const running: { started: Started; machine: number; port: string; url: string; token: string }[] = []
  for (let index = 0; index < servers; index += 1) {
    const { line, ...rest } = await start(["serve", "--dispatch", "--port", "0"])
    const [token = ""] = readFileSync(line.tokenFile ?? "", "utf8")
      .trim()
      .split(/\s+/)
      .slice(-1)
    const url = line.url ?? ""
    running.push({ ...rest, url, token, port: new URL(url).port })
  }
  for (let index = 0; index < count; index += 1) await startWorker()
  return {
    postgres,
    projects,
    client(server, project) {
      const { url = "", token = "" } = running[server % running.length] ?? {}
      return createClient({ url, token, directory: projects[project % projects.length], retryMs: 300_000 })
    },
    workers,
    startWorker,
    async crashServer(index, pauseMs) {
      const server = running[index]
      if (!server) throw new Error(`There is no server ${index}.`)
      await server.started.end("SIGKILL")
      await delay(pauseMs)
      const { started } = await start(["serve", "--dispatch", "--port", server.port], server.machine)
      server.started = started
    },
    async query(text) {
      for (let attempt = 1; ; attempt += 1) {
        const connection = new pg.Client(postgres.url())
        connection.on("error", () => {})
        try {
          await connection.connect()
          return (await connection.query(text)).rows
        } catch (error) {
          // After a crash, processes of the old server may still respond.
          if (attempt === 5) throw error
          await delay(500)
        } finally {
          await connection.end().catch(() => {})
        }
      }
    },
    async close() {
      for (const { end } of all) await end("SIGKILL")
      await postgres.stop()
      rmSync(home, { recursive: true, force: true })
    },
  }
}
