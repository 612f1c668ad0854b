import { readFileSync } from "node:fs"
import { cp } from "node:fs/promises"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { setTimeout as delay } from "node:timers/promises"
import type { Place, Running } from "./place.ts"

/** When a run is cut off. */
export interface Moment {
  name: string
  /** The program that runs the command, with its first arguments. */
  program?: readonly string[]
  /** Before the command starts. */
  prepare?(place: Place): Promise<void>
  /** Resolves at the moment, or when the run ended before it. */
  reached(place: Place, run: Running): Promise<void>
  /** Afterwards, so that the next start finds no trace of what caught the run. */
  clear?(place: Place): void
}

/** A number of milliseconds after the start. */
export function afterTime(ms: number): Moment {
  return {
    name: `after ${ms} ms`,
    reached: (_, run) => Promise.race([delay(ms), run.ended.then(() => {})]),
  }
}

/**
 * Inside the commit of the n-th row that the run writes, counted from 1. A trigger holds it up there: what is in the
 * database is exactly the n - 1 writes before it, and the process has done all that it does before the n-th.
 * `template`: a data directory whose database has its tables.
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
export type FileCall = (typeof fileCalls)[number]
const fileCalls = ["rename", "link", "unlink", "fsync"] as const

/**
 * In the place of the n-th such call, counted from 1 in each thread: whichever comes first to so many. One thread does
 * all that is not waited for, so that most are counted together.
 */
export function atFileCall(call: FileCall, n: number): Moment {
  return {
    name: `at ${call} ${n}`,
    program: [...traced(call), "-e", `inject=${call}:signal=SIGKILL:when=${n}`, "-o", "/dev/null"],
    reached: (_, run) => run.ended.then(() => {}),
  }
}

/** `-D`: the command stays our own child. Not `--seccomp-bpf`, with which no signal comes. */
function traced(calls: string): string[] {
  return ["env", "UV_THREADPOOL_SIZE=1", "strace", "-D", "-f", "-e", `trace=${calls}`]
}

/** Of each such call, how many the busiest thread of a run makes that is left alone. */
export async function countFileCalls(
  place: Place,
  run: (program: readonly string[]) => Promise<void>,
): Promise<Map<FileCall, number>> {
  const log = join(place.home, "calls.log")
  await run([...traced(fileCalls.join()), "-o", log])
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
  return new Map(fileCalls.map((call) => [call, most(call)]))
}

/** How many rows a run writes that is left alone. */
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

/** Every write of a row counts; the one with the number `at` never ends. */
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

/** True while the run has committed all rows before the n-th and holds the lock for it. */
function isHeld(data: string, n: number): boolean {
  using database = open(data)
  // The n-th may share its transaction with some before it.
  if ((unlessLocked(() => written(database)) ?? n) > n - 1) return false
  const isFree = unlessLocked(() => {
    database.exec("BEGIN IMMEDIATE")
    database.exec("ROLLBACK")
    return true
  })
  return isFree === undefined
}

/** Undefined where the database is locked, which one that is opened at this very moment is for readers too. */
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
