import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import type { TackleEvent } from "../../src/event/events.ts"
import type { Message } from "../../src/schema/message.ts"
import type { ToolPart } from "../../src/schema/part.ts"
import { mayHaveActed } from "../../src/schema/tool-moves.ts"
import type { ToolState } from "../../src/schema/tool-state.ts"
import { type Place, processesIn } from "./place.ts"
import { contentOf, effectsIn, finished, tookEffect } from "./task.ts"

/** The stored state after a crash or after the next start. */
export interface Remains {
  /** Problems that SQLite finds. */
  faults: string[]
  sessions: number
  parts: Map<string, ToolPart>
  /** Assistant messages without an end. */
  unfinished: number
  leases: number
}

/** Reads a copy of the database of a data directory, so that the next start finds the database unchanged. */
export function inspect(data: string): Remains {
  const remains: Remains = { faults: [], sessions: 0, parts: new Map(), unfinished: 0, leases: 0 }
  if (!existsSync(join(data, "tackle.db"))) return remains
  const copy = mkdtempSync(join(tmpdir(), "tackle-inspect-"))
  try {
    // The rollback journal exists only while a new database changes to WAL mode.
    for (const name of ["tackle.db", "tackle.db-wal", "tackle.db-journal"])
      if (existsSync(join(data, name))) cpSync(join(data, name), join(copy, name))
    const database = new DatabaseSync(join(copy, "tackle.db"))
    try {
      readInto(remains, database)
    } finally {
      database.close()
    }
  } finally {
    rmSync(copy, { recursive: true })
  }
  return remains
}

function readInto(remains: Remains, database: DatabaseSync): void {
  for (const { integrity_check: line } of database.prepare("PRAGMA integrity_check").all())
    if (line !== "ok") remains.faults.push(String(line))
  for (const row of database.prepare("PRAGMA foreign_key_check").all())
    remains.faults.push(`a row of ${String(row.table)} refers to nothing`)
  // A process that is killed while it creates the tables leaves none or all of them.
  if (database.prepare("SELECT name FROM sqlite_schema WHERE name = 'leases'").get() === undefined) {
    const { n } = database.prepare("SELECT count(*) AS n FROM sqlite_schema").get() ?? {}
    if (n !== 0) remains.faults.push(`half a schema: ${String(n)} entries`)
    return
  }
  const count = (table: string) => Number(database.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n)
  remains.sessions = count("sessions")
  remains.leases = count("leases")
  for (const { data } of database.prepare("SELECT data FROM parts").all()) {
    const part = JSON.parse(String(data)) as ToolPart
    if (part.type === "tool") remains.parts.set(part.id, part)
  }
  for (const { data } of database.prepare("SELECT data FROM messages").all()) {
    const message = JSON.parse(String(data)) as Message
    if (message.role === "assistant" && message.time.completed === undefined) remains.unfinished += 1
  }
}

/** The order of states. Only later states may follow an announced state. */
const rank: Record<ToolState["status"], number> = { pending: 0, running: 1, completed: 2, error: 2 }

/**
 * Returns the problems right after a crash: a damaged database, an announced state that was not stored, a recorded
 * result without its effect, and an effect of a call that is recorded as not started.
 */
export function wrongAfterCrash(
  remains: Remains,
  { directory }: Place,
  { stdout, isKept }: { stdout: string; isKept(part: ToolPart): boolean },
): string[] {
  const wrong = [...remains.faults]
  for (const event of eventsIn(stdout)) {
    if (event.type !== "part.updated" || event.part.type !== "tool" || !isKept(event.part)) continue
    const { id, tool, state } = event.part
    const stored = remains.parts.get(id)?.state
    if (!stored) wrong.push(`${tool} was announced as ${state.status} and is not stored`)
    else if (rank[stored.status] < rank[state.status])
      wrong.push(`${tool} was announced as ${state.status} and is stored as ${stored.status}`)
    else if (state.status === "completed" && JSON.stringify(stored) !== JSON.stringify(state))
      wrong.push(`the stored result of ${tool} is not the one that was announced`)
  }
  for (const { tool, state } of remains.parts.values()) {
    const took = tookEffect(tool, state.input, directory)
    if (state.status === "completed" && took === false) wrong.push(`${tool} is recorded as done and is not`)
    const begun = state.status !== "pending" && (state.status !== "running" || mayHaveActed(state))
    if (!begun && took === true) wrong.push(`${tool} is recorded as not started and has acted`)
  }
  return wrong
}

/** Returns the problems after the task was continued until it ended. */
export function wrongAtEnd(remains: Remains, place: Place): string[] {
  const { directory, data } = place
  const wrong = [...remains.faults, ...place.untruths]
  const effects = effectsIn(directory).sort()
  if (effects.join() !== finished.effects.join()) wrong.push(`the effects are ${effects.join(", ")}`)
  for (const [name, content] of Object.entries(finished.files))
    if (contentOf(directory, name) !== content) wrong.push(`${name} is not as it should be`)
  for (const { tool, state } of remains.parts.values())
    if (state.status === "pending" || state.status === "running")
      wrong.push(`a ${tool} call is still ${state.status}`)
  if (remains.unfinished > 0) wrong.push(`${remains.unfinished} answers have no end`)
  if (remains.leases > 0) wrong.push("a lease is left")
  const running = processesIn(directory)
  if (running.length > 0) wrong.push(`processes are left: ${running.map(({ pid }) => pid).join(", ")}`)
  for (const name of ["processes", "temporary", "placeholders"]) {
    const book = join(data, name)
    if (existsSync(book) && readdirSync(book).length > 0) wrong.push(`the journal of ${name} is not empty`)
  }
  const ours = readdirSync(directory).filter((name) => name.startsWith(".tackle-"))
  if (ours.length > 0) wrong.push(`${ours.join(", ")} is left in the project`)
  return wrong
}

/** Returns the events that a run printed. Ignores the last line, which may be incomplete. */
export function eventsIn(stdout: string): TackleEvent[] {
  const lines = stdout.split("\n").slice(0, -1)
  return lines.map((line) => JSON.parse(line) as TackleEvent)
}
