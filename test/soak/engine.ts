/**
 * Prompts one session repeatedly in its own process: reads, writes, commands, jobs, subagents, questions, aborts,
 * failures of the provider, and a history that must be compacted. Prints the open resources as one line of JSON.
 */
import { readdirSync } from "node:fs"
import { createTackle } from "../../src/engine/create-tackle.ts"
import type { SessionHandle } from "../../src/session/handle.ts"
import { readProcessTable } from "../../src/util/process-table.ts"
import { type Held, kindOf, type SoakReport } from "./plan.ts"

const [directory = "", url = "", count = "0"] = process.argv.slice(2)
const turns = Number(count)
const report: SoakReport = {
  heap: [],
  statuses: {},
  compactions: 0,
  retries: 0,
  before: held(),
  during: [],
  after: held(),
}

for (const round of ["first", "second"] as const) {
  // The first round loads modules that stay loaded.
  const tackle = await createTackle({
    directory,
    dataDirectory: `${directory}/.data`,
    model: "test/m",
    providers: { test: { options: { baseURL: url, apiKey: "k" }, models: { m: {} } } },
    permission: { "*": "allow", webfetch: "ask", bash: { "*": "allow", "echo asked": "ask" } },
    sandbox: "off",
    onProblem: (message, error) => {
      throw new Error(message, { cause: error })
    },
  })
  tackle.on("permission.asked", (request) => void request.reply("once"))
  const session = await tackle.sessions.create()
  for (let turn = 0; turn < (round === "first" ? 10 : turns); turn += 1) {
    await prompt(session, turn)
    if (turn % 10 === 9) await passing(turn)
    if (round === "first" || turn % 5 !== 4) continue
    report.heap.push(await heapBytes())
    report.during.push(held())
  }
  report.compactions = await compactionsIn(session)
  await tackle.close()
  if (round === "first") report.before = await settled()

  /** Creates, prompts and deletes another session. */
  async function passing(turn: number): Promise<void> {
    const other = await tackle.sessions.create()
    await prompt(other, turn)
    await tackle.sessions.delete(other.id)
  }
}
report.after = await settled()
process.stdout.write(`${JSON.stringify(report)}\n`)

async function prompt(session: SessionHandle, turn: number): Promise<void> {
  const kind = kindOf(turn)
  const run = session.prompt(`turn ${turn}: ${kind}`)
  for await (const event of run) {
    if (event.type === "part.updated" && event.part.type === "retry") report.retries += 1
    if (event.sessionID !== session.id) continue
    const started =
      event.type === "part.updated" && event.part.type === "tool" && event.part.state.status === "running"
    if (kind === "abort-call" && started) void session.abort()
    if (kind === "abort-answer" && event.type === "part.delta") void session.abort()
  }
  const { status } = await run.completed
  report.statuses[`${kind} ${status}`] = (report.statuses[`${kind} ${status}`] ?? 0) + 1
}

async function compactionsIn(session: SessionHandle): Promise<number> {
  const messages = await session.messages()
  return messages.filter(({ parts }) => parts.some(({ type }) => type === "compaction")).length
}

function held(): Held {
  return {
    resources: process
      .getActiveResourcesInfo()
      .filter((name) => name !== "Immediate")
      .sort(),
    descriptors: readdirSync("/proc/self/fd").length,
    children: readProcessTable().filter(({ parent, alive }) => parent === process.pid && alive).length,
  }
}

/** Waits until the system has closed released resources. Returns the open resources. */
async function settled(): Promise<Held> {
  for (let look = 0; look < 50; look += 1) {
    const now = held()
    const passing = ["TCPSocketWrap", "FSReqCallback"].some((name) => now.resources.includes(name))
    if (now.children === 0 && !passing) break
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return held()
}

/** Returns the heap in use after two collections. The second one frees objects that waited for their finalizers. */
async function heapBytes(): Promise<number> {
  for (let round = 0; round < 2; round += 1) {
    globalThis.gc?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return process.memoryUsage().heapUsed
}
