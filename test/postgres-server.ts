import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"

/** Directory where Debian installs the versions of PostgreSQL. */
const installed = "/usr/lib/postgresql"

/** Directory with the programs of PostgreSQL 15 or newer, if any. */
export const postgresPrograms: string | undefined = (existsSync(installed) ? readdirSync(installed) : [])
  .filter((version) => Number(version) >= 15)
  .map((version) => join(installed, version, "bin"))
  .find((directory) => existsSync(join(directory, "initdb")))

/** A server on a Unix socket in a temporary directory. */
export interface PostgresServer {
  /** URL of a database, as the superuser `tackle`, who needs no password. */
  url(database?: string, user?: string): string
  /** Runs statements as the superuser. Blocks this process until they have ended. */
  executeSync(sql: string): void
  /** Kills all processes of the server with SIGKILL, and starts it again. */
  crash(): Promise<void>
  /** Ends the server without starting it again. */
  end(): Promise<void>
  stop(): Promise<void>
}

/**
 * Starts a server. It syncs to the disk only if `isDurable` is true. As root, it runs as another user, because PostgreSQL refuses root. The
 * role `guest` has the password `secret` and no rights.
 */
export async function startPostgres({
  isDurable = false,
}: {
  isDurable?: boolean
} = {}): Promise<PostgresServer> {
  if (!postgresPrograms) throw new Error("PostgreSQL is not installed. Run: apt-get install postgresql")
  const programs = postgresPrograms
  const directory = mkdtempSync(join(tmpdir(), "tackle-postgres-"))
  const data = join(directory, "data")
  const identity: { uid?: number; gid?: number } = process.getuid?.() === 0 ? ordinaryUser() : {}
  if (identity.uid !== undefined) chownSync(directory, identity.uid, identity.gid ?? identity.uid)

  createCluster(programs, data, identity)

  let server: ChildProcess | undefined

  async function start(): Promise<void> {
    const settings = [
      "listen_addresses=",
      ...(isDurable
        ? ["shared_buffers=256MB", "max_connections=200"]
        : ["fsync=off", "full_page_writes=off", "shared_buffers=16MB", "max_connections=60"]),
    ]
    for (let attempt = 0; attempt < 500; attempt += 1) {
      // After a crash, it starts only when the other processes of the old server have ended.
      if (!server || server.exitCode !== null)
        server = spawn(
          join(programs, "postgres"),
          ["-D", data, "-k", directory, ...settings.flatMap((setting) => ["-c", setting])],
          { ...identity, cwd: directory, stdio: "ignore" },
        )
      const ready = spawnSync(join(programs, "pg_isready"), ["-q", "-h", directory], { cwd: directory })
      if (ready.status === 0) return
      await delay(20)
    }
    throw new Error("PostgreSQL did not start.")
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const ending = server
    server = undefined
    if (!ending || ending.exitCode !== null) return
    const exited = once(ending, "exit")
    ending.kill(signal)
    await exited
  }

  const url = (database = "postgres", user = "tackle") =>
    `postgres://${user}@/${database}?host=${encodeURIComponent(directory)}`

  await start()
  return {
    url,
    executeSync(sql) {
      const { status, stderr } = spawnSync(join(programs, "psql"), ["-q", "-c", sql, url()], {
        encoding: "utf8",
      })
      if (status !== 0) throw new Error(`psql failed: ${stderr}`)
    },
    async crash() {
      // The other processes of the server notice its end and exit.
      await end("SIGKILL")
      await start()
    },
    end: () => end("SIGQUIT"),
    async stop() {
      await end("SIGQUIT")
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Copies are kept here, because a copy takes a fifth of the time of `initdb`. */
const clusters = join(import.meta.dirname, "../node_modules/.cache")

/** Creates the files of a server. Later calls copy them. With small log files, a copy has 28 MB instead of 39 MB. */
function createCluster(programs: string, data: string, identity: { uid?: number; gid?: number }): void {
  const kept = join(clusters, `postgres-${basename(dirname(programs))}-${identity.uid ?? "own"}-small`)
  if (existsSync(kept) && spawnSync("cp", ["-a", kept, data]).status === 0) return
  rmSync(data, { recursive: true, force: true })
  const made = spawnSync(
    join(programs, "initdb"),
    ["-D", data, "-U", "tackle", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--wal-segsize=1"],
    { ...identity, cwd: dirname(data), encoding: "utf8" },
  )
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`)
  const access = join(data, "pg_hba.conf")
  writeFileSync(access, `local all guest scram-sha-256\n${readFileSync(access, "utf8")}`)
  const copy = `${kept}.${process.pid}`
  mkdirSync(clusters, { recursive: true })
  try {
    // Complete under its name, because other processes use it at the same time.
    if (spawnSync("cp", ["-a", data, copy]).status === 0) renameSync(copy, kept)
  } catch {
    // Another process was faster.
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

function ordinaryUser(): { uid: number; gid: number } {
  const lines = readFileSync("/etc/passwd", "utf8").split("\n")
  const line = ["postgres", "nobody"].flatMap((name) =>
    lines.filter((each) => each.startsWith(`${name}:`)),
  )[0]
  const [, , uid, gid] = line?.split(":") ?? []
  if (uid === undefined || gid === undefined)
    throw new Error("No user for PostgreSQL was found in /etc/passwd.")
  return { uid: Number(uid), gid: Number(gid) }
}
