import { readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import type { MessageWithParts } from "../../src/schema/message.ts"
import type { Part } from "../../src/schema/part.ts"
import type { SessionEvent } from "../../src/session/session-events.ts"
import { type Cluster, startCluster } from "./cluster.ts"
import { type ScaleModel, startScaleModel } from "./model.ts"
import { openSession, type ScaleSession } from "./session.ts"

/** The result of a run with failures. Every list of problems is empty if the guarantees hold. */
export interface Chaos {
  sessions: number
  turns: number
  /** Number of workers that were killed. */
  kills: number
  serverKills: number
  /** Number of workers that were stopped for longer than their lease. */
  stops: number
  /** Number of PostgreSQL crashes. */
  databaseCrashes: number
  connectionCuts: number
  /** Number of calls whose effect is unknown and marked as unknown. */
  unknown: number
  /** Times in milliseconds from the kill of a worker to the next model request of the sessions that it ran. */
  takeovers: number[]
  /** Takeover times during which PostgreSQL also crashed or lost its connections. `takeovers` does not contain them. */
  takeoversInOutages: number[]
  /** Turns whose command ran twice, never ran although it is marked as completed, or is missing. */
  effects: string[]
  /** Prompts that are missing or were delivered more than once. */
  inputs: string[]
  /** Sessions whose client has a different history from the store, and the differences. */
  histories: string[]
}

/** Number of servers. */
const servers = 2

/** Runs sessions while workers and servers are killed every `everyMs`, until all turns are done. */
export async function measureChaos({
  command,
  workers: count,
  sessions: sessionCount,
  turns,
  everyMs,
}: {
  command: string
  workers: number
  sessions: number
  turns: number
  everyMs: number
}): Promise<Chaos> {
  const model = await startScaleModel()
  const cluster = await startCluster({
    ...{ command, modelUrl: model.url, workers: count },
    servers,
    projects: 1,
    concurrency: Math.ceil((2 * sessionCount) / count),
  })
  try {
    const sessions = await Promise.all(
      Array.from({ length: sessionCount }, (_, index) => openSession(cluster.client(index, 0), `s${index}`)),
    )
    const parts = new Map(sessions.map((session) => [session.name, followParts(session)]))
    let isDone = false
    const working = Promise.all(
      sessions.map(async (session) => {
        for (let turn = 1; turn <= turns; turn += 1) await session.turn(turn)
      }),
    ).finally(() => {
      isDone = true
    })
    working.catch(() => {})
    const names = new Map(sessions.map(({ name, session }) => [session.id, name]))
    const { killed, outages, ...failures } = await breakThings(cluster, {
      everyMs,
      names,
      isDone: () => isDone,
    })
    await working
    // Wait until the clients have received the last changes.
    await delay(2000)
    const takeovers = takeoversOf(killed, model)
    const isInOutage = ({ from, to }: Takeover) => outages.some((time) => time >= from && time <= to)
    const result: Chaos = {
      ...{ sessions: sessionCount, turns, ...failures },
      takeovers: takeovers.filter((each) => !isInOutage(each)).map(durationOf),
      takeoversInOutages: takeovers.filter(isInOutage).map(durationOf),
      ...{ unknown: 0, effects: [], inputs: [], histories: [] },
    }
    for (const session of sessions) {
      const messages = await session.session.messages()
      const stored = messages.flatMap((message) => message.parts)
      result.unknown += checkEffects(cluster, { session, messages, turns }, result.effects)
      result.inputs.push(...wrongPrompts(session.name, messages, turns))
      const [seen, kept] = [textOf(parts.get(session.name)?.values() ?? []), textOf(stored)]
      if (seen !== kept) {
        result.histories.push(`${session.name}: ${differenceOf(seen, kept)}`)
      }
      session.close()
    }
    return result
  } finally {
    await cluster.close()
    await model.close()
  }
}

/** The kill or suspension of a worker, and the sessions that it was running. */
interface Kill {
  /** Time of the failure, in milliseconds of `performance.now()`. */
  time: number
  sessions: readonly string[]
}

/** Causes a failure every `everyMs` until `isDone`. */
async function breakThings(
  cluster: Cluster,
  { everyMs, names, isDone }: { everyMs: number; names: ReadonlyMap<string, string>; isDone(): boolean },
) {
  const counts = { kills: 0, serverKills: 0, stops: 0, databaseCrashes: 0, connectionCuts: 0 }
  const killed: Kill[] = []
  /** Times at which PostgreSQL crashed or lost its connections, in milliseconds of `performance.now()`. */
  const outages: number[] = []
  /** Workers and servers that are being started. */
  const starting = new Set<Promise<unknown>>()
  const inBackground = (work: Promise<unknown>) => {
    const settled: Promise<unknown> = work.finally(() => starting.delete(settled))
    settled.catch(() => {})
    starting.add(settled)
  }

  async function killWorker(): Promise<void> {
    const [victim] = cluster.workers.splice(Math.floor(Math.random() * cluster.workers.length), 1)
    if (!victim) return
    inBackground(cluster.startWorker())
    await note(victim.child.pid)
    await victim.end("SIGKILL")
    counts.kills += 1
  }

  /** Records the sessions that a worker is running. */
  async function note(pid: number | undefined): Promise<void> {
    const rows = await cluster.query(
      `SELECT session_id AS id FROM tackle.leases WHERE (holder::json ->> 'pid')::int = ${pid}`,
    )
    killed.push({ time: performance.now(), sessions: rows.map(({ id }) => names.get(String(id)) ?? "") })
  }

  async function stopWorker(): Promise<void> {
    const [victim] = cluster.workers.splice(Math.floor(Math.random() * cluster.workers.length), 1)
    if (!victim) return
    // Longer than its lease. Another worker takes over, and this one must not write when it continues.
    await note(victim.child.pid)
    victim.child.kill("SIGSTOP")
    counts.stops += 1
    await delay(4500)
    victim.child.kill("SIGCONT")
    cluster.workers.push(victim)
  }

  for (let round = 1; !isDone(); round += 1) {
    await delay(everyMs)
    if (isDone()) break
    if (round % 20 === 4) {
      outages.push(performance.now())
      await cluster.postgres.crash()
      counts.databaseCrashes += 1
    }
    if (round % 20 === 6) {
      outages.push(performance.now())
      await cluster.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tackle%'",
      )
      counts.connectionCuts += 1
    }
    if (round % 10 === 3) inBackground(stopWorker())
    else if (round % 3 === 2) {
      counts.serverKills += 1
      await cluster.crashServer(counts.serverKills % servers, Math.random() * 1000)
    } else await killWorker()
  }
  await Promise.all(starting)
  return { ...counts, killed, outages }
}

/** The time between the kill of a worker and the next model request of a session, in ms of `performance.now()`. */
interface Takeover {
  from: number
  to: number
}

function durationOf({ from, to }: Takeover): number {
  return to - from
}

/** Returns the time from each kill to the next model request of each session that the worker ran. */
function takeoversOf(killed: readonly Kill[], { continued, arrivals }: ScaleModel): Takeover[] {
  return killed.flatMap(({ time, sessions }) =>
    sessions.flatMap((name) => {
      const next = continued.get(name)?.find((each) => each > time)
      if (next === undefined) return []
      const isBetween = (each: number) => each > time && each < next
      // The run had ended before the kill, or the next worker was killed too.
      const isOther =
        [...arrivals].some(([prompt, each]) => prompt.startsWith(`${name} `) && isBetween(each)) ||
        killed.some((other) => other.sessions.includes(name) && isBetween(other.time))
      return isOther ? [] : [{ from: time, to: next }]
    }),
  )
}

/** Collects a session's parts as a client sees them. */
function followParts(session: ScaleSession): Map<string, Part> {
  const parts = new Map<string, Part>()
  session.onEvent((event: SessionEvent) => {
    if (event.type === "part.updated") parts.set(event.part.id, event.part)
    else if (event.type === "part.removed") parts.delete(event.partID)
  })
  return parts
}

/** Returns the parts as text that does not depend on their order or on streamed text. */
function textOf(parts: Iterable<Part>): string {
  return [...parts]
    .map(
      (part) => `${part.id} ${part.type} ${part.type === "tool" ? part.state.status : ""} ${lengthOf(part)}`,
    )
    .sort()
    .join("\n")
}

/** Returns the parts that only the client or only the store has. */
function differenceOf(seen: string, kept: string): string {
  const [client, store] = [seen, kept].map((text) => new Set(text.split("\n")))
  const others = (from = new Set<string>(), to = new Set<string>()) =>
    [...from].filter((line) => !to.has(line)).join(", ")
  return `the client has ${others(client, store) || "no other part"}, the store ${others(store, client) || "no other part"}`
}

function lengthOf(part: Part): number {
  return part.type === "text" ? part.text.length : 0
}

/**
 * Compares the lines that a session's commands wrote with its calls. Adds the differences to `problems`. Returns the
 * number of calls whose effect is unknown.
 */
function checkEffects(
  { projects }: Cluster,
  {
    session,
    messages,
    turns,
  }: { session: ScaleSession; messages: readonly MessageWithParts[]; turns: number },
  problems: string[],
): number {
  const stored = messages.flatMap(({ parts }) => parts)
  const lines = projects.flatMap((project) => readLines(join(project, "effects", session.name)))
  let unknown = 0
  for (let turn = 1; turn <= turns; turn += 1) {
    const count = lines.filter((line) => line === String(turn)).length
    const calls = stored.flatMap((part) =>
      part.type === "tool" && part.tool === "bash" && commandOf(part) === turn ? [part.state] : [],
    )
    const completed = calls.filter(({ status }) => status === "completed").length
    const uncertain = calls.filter(
      (state) => state.status === "error" && state.error.includes("may have taken effect"),
    ).length
    unknown += uncertain
    const isRight = count >= completed && count <= completed + uncertain && completed + uncertain > 0
    if (!isRight || completed > 1)
      problems.push(
        `${session.name} turn ${turn}: ${count} lines, ${completed} completed and ${uncertain} unknown of ${calls.length} calls (${historyOf(messages, `${session.name} ${turn}`)})`,
      )
  }
  return unknown
}

/** Returns a session's prompts that are not in exactly one message. */
function wrongPrompts(name: string, messages: readonly MessageWithParts[], turns: number): string[] {
  const texts = messages.flatMap(({ message, parts }) =>
    message.role === "user" ? parts.flatMap((part) => (part.type === "text" ? [part.text] : [])) : [],
  )
  return Array.from({ length: turns }, (_, index) => `${name} ${index + 1}`).flatMap((prompt) => {
    const count = texts.filter((text) => text === prompt).length
    return count === 1 ? [] : [`${prompt} is in ${count} messages`]
  })
}

/** Describes the messages and calls that follow a prompt, up to the next prompt. */
function historyOf(messages: readonly MessageWithParts[], prompt: string): string {
  const texts = ({ parts }: MessageWithParts) =>
    parts.flatMap((part) => (part.type === "text" && !part.synthetic ? [part.text] : []))
  const begin = messages.findIndex((each) => each.message.role === "user" && texts(each).includes(prompt))
  if (begin === -1) return "the prompt is missing"
  const end = messages.findIndex(
    (each, index) => index > begin && each.message.role === "user" && texts(each).length > 0,
  )
  return messages
    .slice(begin, end === -1 ? undefined : end)
    .map(({ message, parts }) => {
      const calls = parts.flatMap((part) =>
        part.type === "tool"
          ? [`${part.tool} ${part.state.status === "error" ? part.state.error : part.state.status}`]
          : [],
      )
      const error = message.role === "assistant" && message.error ? [message.error.message] : []
      return [message.role, ...calls, ...error].join(", ")
    })
    .join("; ")
}

function commandOf(part: Extract<Part, { type: "tool" }>): number {
  const { state } = part
  const command = state.status === "pending" ? state.raw : String(state.input.command ?? "")
  return Number(/echo (\d+) >>/.exec(command)?.[1])
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\n").filter(Boolean)
  } catch {
    return []
  }
}
