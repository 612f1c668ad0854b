import { readFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import type { MessageWithParts } from "../../src/schema/message.ts"
import type { Part } from "../../src/schema/part.ts"
import type { SessionEvent } from "../../src/session/session-events.ts"
import { type Cluster, startCluster } from "./cluster.ts"
import { startScaleModel } from "./model.ts"
import { openSession, type ScaleSession } from "./session.ts"

/** The result of a run with failures. Every list of problems is empty if the guarantees hold. */
export interface Chaos {
  sessions: number
  turns: number
  kills: number
  /** Workers that were stopped for longer than their lease. */
  stops: number
  serverCrashes: number
  connectionCuts: number
  /** Calls whose effect is unknown, and is marked as such. */
  unknown: number
  /** Times in milliseconds from a kill to the next model request of a session that the worker ran. */
  takeovers: number[]
  /** Turns whose command ran twice, never ran although it is marked as completed, or is missing. */
  effects: string[]
  /** Sessions whose history in the client differs from the history in the store. */
  histories: string[]
}

/** Runs sessions while workers are killed every 2 seconds, until all turns are done. */
export async function measureChaos({
  command,
  workers: count,
  sessions: sessionCount,
  turns,
}: {
  command: string
  workers: number
  sessions: number
  turns: number
}): Promise<Chaos> {
  const model = await startScaleModel()
  const cluster = await startCluster({
    ...{ command, modelUrl: model.url, workers: count },
    servers: 2,
    concurrency: Math.ceil((2 * sessionCount) / count),
  })
  try {
    const sessions = await Promise.all(
      Array.from({ length: sessionCount }, (_, index) => {
        const client = cluster.clients[index % cluster.clients.length]
        if (!client) throw new Error("The cluster has no server.")
        return openSession(client, `s${index}`)
      }),
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
    const failures = await breakThings(cluster, model.continued, () => isDone)
    await working
    // Wait until the clients have received the last changes.
    await delay(2000)
    const result: Chaos = {
      ...{ sessions: sessionCount, turns, ...failures },
      ...{ unknown: 0, effects: [], histories: [] },
    }
    for (const session of sessions) {
      const messages = await session.session.messages()
      const stored = messages.flatMap((message) => message.parts)
      result.unknown += checkEffects(cluster, { session, messages, turns }, result.effects)
      const [seen, kept] = [textOf(parts.get(session.name)?.values() ?? []), textOf(stored)]
      if (seen !== kept) {
        result.histories.push(session.name)
      }
      session.close()
    }
    return result
  } finally {
    await cluster.close()
    await model.close()
  }
}

/** Causes failures until `isDone`. `continued` contains the time at which each session was last continued. */
async function breakThings(
  cluster: Cluster,
  continued: ReadonlyMap<string, number>,
  isDone: () => boolean,
): Promise<Pick<Chaos, "kills" | "stops" | "serverCrashes" | "connectionCuts" | "takeovers">> {
  const result = { kills: 0, stops: 0, serverCrashes: 0, connectionCuts: 0, takeovers: [] as number[] }
  for (let round = 1; !isDone(); round += 1) {
    await delay(2000)
    if (isDone()) break
    const [victim] = cluster.workers.splice(Math.floor(Math.random() * cluster.workers.length), 1)
    if (!victim) throw new Error("No worker is running.")
    if (round % 5 === 3) {
      // The worker stops for longer than its lease. Another worker takes over, and the stopped worker must not write
      // when it continues.
      victim.child.kill("SIGSTOP")
      result.stops += 1
      await delay(4500)
      victim.child.kill("SIGCONT")
      cluster.workers.push(victim)
      continue
    }
    if (round === 4) {
      await cluster.postgres.crash()
      result.serverCrashes += 1
    }
    if (round === 6) {
      await cluster.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tackle%'",
      )
      result.connectionCuts += 1
    }
    const replaced = cluster.startWorker()
    replaced.catch(() => {})
    const at = performance.now()
    await victim.end("SIGKILL")
    result.kills += 1
    await replaced
    // Count the sessions that other workers have continued since the kill.
    await delay(3000)
    for (const time of continued.values()) if (time > at) result.takeovers.push(time - at)
  }
  return result
}

/** Collects the parts of a session as a client sees them. */
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

function lengthOf(part: Part): number {
  return part.type === "text" ? part.text.length : 0
}

/**
 * Compares the lines that the commands of a session wrote with its calls. Adds what is wrong to `problems`. Returns the
 * number of calls whose effect is unknown.
 */
function checkEffects(
  { directory }: Cluster,
  {
    session,
    messages,
    turns,
  }: { session: ScaleSession; messages: readonly MessageWithParts[]; turns: number },
  problems: string[],
): number {
  const stored = messages.flatMap(({ parts }) => parts)
  const lines = readLines(join(directory, "effects", session.name))
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
