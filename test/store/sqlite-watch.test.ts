import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { setTimeout as delay } from "node:timers/promises"
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest"
import { createSqliteWatch, type SqliteWatchOptions } from "../../src/store/sqlite-watch.ts"

let directory: string
let path: string
let database: DatabaseSync
/** Number of times that the watch has read the version of the data. */
let checks: number

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "tackle-watch-"))
  path = join(directory, "tackle.db")
  database = new DatabaseSync(path)
  database.exec("PRAGMA journal_mode = WAL; CREATE TABLE notes (text)")
  checks = 0
})
afterEach(() => {
  vi.useRealTimers()
  database.close()
  rmSync(directory, { recursive: true, force: true })
})

/** Starts a watch, and returns the function that returns the number of its reports. */
function startWatch(options: SqliteWatchOptions, location = path): () => number {
  const watched = {
    location: () => location,
    prepare: (sql: string) => {
      const statement = database.prepare(sql)
      return {
        get() {
          checks++
          return statement.get()
        },
      }
    },
  }
  const watch = createSqliteWatch(watched as unknown as DatabaseSync, options)
  let reports = 0
  watch.watch(() => reports++)
  onTestFinished(watch.end)
  return () => reports
}

/** Commits once in another process. */
async function commitElsewhere(): Promise<void> {
  const program = `const { DatabaseSync } = require("node:sqlite")
    const database = new DatabaseSync(process.argv[1], { timeout: 5000 })
    database.exec("INSERT INTO notes VALUES ('elsewhere')")
    database.close()`
  const child = spawn(process.execPath, ["-e", program, path], { stdio: ["ignore", "ignore", "inherit"] })
  await new Promise((resolve) => child.once("exit", resolve))
}

const isReporting = process.platform === "linux" || process.platform === "darwin"

test.runIf(isReporting)("reports a commit of another process although no check is due", async () => {
  const reports = startWatch({ idleMs: 3_600_000, quietMs: 500 })
  await delay(1_000)
  await commitElsewhere()
  await expect.poll(reports).toBe(1)
})

test("reports a commit of another process where the system reports no changes", async () => {
  const reports = startWatch({ idleMs: 3_600_000, quietMs: 500 }, join(directory, "missing.db"))
  await delay(1_000)
  await commitElsewhere()
  await expect.poll(reports).toBe(1)
})

test.runIf(isReporting)("checks for two seconds after a change, and then rarely", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] })
  startWatch({})
  await vi.advanceTimersByTimeAsync(2_300)
  const active = checks
  await vi.advanceTimersByTimeAsync(60_000)
  expect(active).toBeGreaterThan(10)
  expect(checks - active).toBeLessThan(32)
})
