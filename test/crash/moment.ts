import { readFileSync } from "node:fs"
import { cp } from "node:fs/promises"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { setTimeout as delay } from "node:timers/promises"
import type { Place, Running } from "./place.ts"

/** A moment at which a run is interrupted. */
export interface Moment {
  name: string
  /** The program that runs the command, with its first arguments. */
  program?: readonly string[]
  /** Called before the command starts. */
  prepare?(place: Place): Promise<void>
  /** Resolves at the moment, or when the run ends before the moment. */
  reached(place: Place, run: Running): Promise<void>
  /** Called after the interruption. Removes what `prepare` added, so that the next start is not affected. */
  clear?(place: Place): void
}

/** Returns the moment that is a number of milliseconds after the start. */
export function afterTime(ms: number): Moment {
  return {
    name: `after ${ms} ms`,
    reached: (_, run) => Promise.race([delay(ms), run.ended.then(() => {})]),
  }
}

/**
 * Returns the moment inside the commit of the n-th row that the run writes, counted from 1. A trigger blocks the run
 * there: the database contains exactly the n - 1 earlier writes, and the process has finished all work before the n-th
 * write. `template` is a data directory whose database has its tables.
 */
export function atWrite(n: number, template: string): Moment {
  return {
    name: `in write ${n}`,
    async prepare({ data }) {
      await cp(template, data, { recursive: true })
      using database = open(data)
      database.exec(traps(n))
    },
    async reached({ data }, run) {
      let over = false
      void run.ended.then(() => {
        over = true
      })
      for (let held = 0; held < 3 && !over; await delay(15)) held = isHeld(data, n) ? held + 1 : 0
    },
    clear({ data }) {
      using database = open(data)
      for (const { name, type } of database.prepare("SELECT name, type FROM sqlite_schema").all())
        if (String(name).startsWith("crash_")) database.exec(`DROP ${String(type)} ${String(name)}`)
    },
  }
}

/** System calls on files at which a kill can happen. */
export type FileCall = (typeof fileCalls)[number] | "pwrite64"
const fileCalls = ["rename", "link", "unlink", "fsync"] as const

/**
 * Returns the moment of the n-th such call in any thread. Each thread counts its own calls, from 1. One thread makes
 * all asynchronous calls, so most calls are counted together.
 */
export function atFileCall(call: FileCall, n: number): Moment {
  return {
    name: `at ${call} ${n}`,
    program: [...traced(call), "-e", `inject=${call}:signal=SIGKILL:when=${n}`, "-o", "/dev/null"],
    reached: (_, run) => run.ended.then(() => {}),
  }
}

/** Uses `-D`, so that the command stays a child of this process. `--seccomp-bpf` would prevent the signal. */
function traced(calls: string): string[] {
  return ["env", "UV_THREADPOOL_SIZE=1", "strace", "-D", "-f", "-e", `trace=${calls}`]
}

/** Returns, for each system call, the number of calls of the busiest thread in an undisturbed run. */
export async function countFileCalls(
  place: Place,
  run: (program: readonly string[]) => Promise<void>,
  calls: readonly FileCall[] = fileCalls,
): Promise<Map<FileCall, number>> {
  const log = join(place.home, "calls.log")
  await run([...traced(calls.join()), "-o", log])
  const lines = readFileSync(log, "utf8").split("\n")
  const most = (call: FileCall) => {
    const threads = lines.flatMap((line) => new RegExp(`^(\\d+) +${call}\\(`).exec(line)?.[1] ?? [])
    return Math.max(
      0,
      ...Map.groupBy(threads, (thread) => thread)
        .values()
        .map(({ length }) => length),
    )
  }
  return new Map(calls.map((call) => [call, most(call)]))
}

/** Returns the number of rows that an undisturbed run writes. */
export async function countWrites(place: Place, template: string, run: () => Promise<void>): Promise<number> {
  const moment = atWrite(1_000_000, template)
  await moment.prepare?.(place)
  await run()
  using database = open(place.data)
  return written(database)
}

function open(data: string): DatabaseSync & Disposable {
  const database = new DatabaseSync(join(data, "tackle.db"), { timeout: 0 })
  return Object.assign(database, { [Symbol.dispose]: () => database.close() })
}

/** Returns SQL for triggers that count every written row. The write with the number `at` never ends. */
function traps(at: number): string {
  const tables = ["sessions", "messages", "parts", "todos", "grants", "leases"]
  const count = `BEGIN
    UPDATE crash_count SET n = n + 1;
    SELECT CASE WHEN (SELECT n >= ${at} FROM crash_count) THEN (SELECT count(*) FROM crash_for_ever) END;
  END;`
  return `
    CREATE TABLE crash_count (n INTEGER NOT NULL);
    INSERT INTO crash_count VALUES (0);
    CREATE VIEW crash_for_ever AS
      WITH RECURSIVE numbers (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM numbers) SELECT x FROM numbers;
    ${tables
      .flatMap((table) =>
        ["INSERT", "DELETE"].map(
          (kind) => `CREATE TRIGGER crash_${kind}_${table} BEFORE ${kind} ON ${table} ${count}`,
        ),
      )
      .join("\n")}`
}

/** Returns true while the run has committed all rows before the n-th row and holds the lock to write that row. */
function isHeld(data: string, n: number): boolean {
  using database = open(data)
  // The n-th row may share its transaction with earlier rows.
  if ((unlessLocked(() => written(database)) ?? n) > n - 1) return false
  const isFree = unlessLocked(() => {
    database.exec("BEGIN IMMEDIATE")
    database.exec("ROLLBACK")
    return true
  })
  return isFree === undefined
}

/** Returns undefined if the database is locked. While a process opens the database, readers are locked out too. */
function unlessLocked<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    // The low byte of SQLite's code is the kind: 5 is "busy".
    if (error instanceof Error && "errcode" in error && (Number(error.errcode) & 0xff) === 5) return undefined
    throw error
  }
}

function written(database: DatabaseSync): number {
  return Number(database.prepare("SELECT n FROM crash_count").get()?.n)
}
