import { writeFileSync } from "node:fs"
import { setTimeout as pause } from "node:timers/promises"
import { expect, test } from "vitest"
import { createClient } from "../../src/client/client.ts"
import type { SessionClient } from "../../src/client/sessions.ts"
import { dataPaths } from "../../src/engine/data-directory.ts"
import type { Delivery } from "../../src/schema/input.ts"
import { openSqliteStore } from "../../src/store/sqlite.ts"
import { createView } from "../client/view.ts"
import { isComplete } from "../runs.ts"
import { createMachine, type Machine, until } from "./run-tackle.ts"

/** Number of times that the server is killed. */
const kills = Number(process.env.TACKLE_TEST_SERVER_KILLS ?? (isComplete ? 6 : 2))

const attached = 10

/** Number of clients that send an input before each kill. */
const senders = isComplete ? attached : 4

const token = "a-token-for-the-test-0123456789abcdef"

/** Starts a server and waits until it listens. */
async function startServer(machine: Machine, port: number) {
  const tokenFile = machine.project.path(".token")
  const flags = ["--port", String(port), "--token-file", tokenFile, "--format", "json"]
  const served = machine.start(["serve", ...flags], { timeoutMs: 600_000 })
  await until("the server listens", () => served.stdout.includes("\n") || served.code !== null)
  return { served, url: new URL(JSON.parse(served.stdout.split("\n")[0] ?? "").url) }
}

/** Follows a session from the start until the signal fires. */
function follow(session: SessionClient, signal: AbortSignal) {
  const view = createView()
  const ended = (async () => {
    for await (const event of session.events({ after: 0, signal })) {
      expect(event.type).not.toBe("reset")
      view.apply(event)
    }
  })()
  return { view, ended }
}

test(`ten clients lose nothing and repeat nothing when the server is killed ${kills} times in mid-stream`, {
  timeout: 60_000 + kills * 15_000,
}, async () => {
  const machine = await createMachine({
    script: ({ body: { messages } }) => ({
      text: "Some words that arrive one after another, so that the server is killed between them.",
      pieceSize: 4,
      pieceDelayMs: 10,
      ...(messages.at(-1)?.role === "user" && { calls: [{ name: "list", arguments: {} }] }),
    }),
    config: { permission: { "*": "allow" } },
  })
  writeFileSync(machine.project.path(".token"), `${token}\n`, { mode: 0o600 })
  let { served, url } = await startServer(machine, 0)
  const leave = new AbortController()
  const options = { url: url.href, token, directory: machine.project.directory }
  const { id } = await createClient(options).sessions.create()
  const clients = await Promise.all(
    Array.from({ length: attached }, async () => {
      const session = await createClient(options).sessions.get(id)
      if (!session) throw new Error("the session does not exist")
      return { session, ...follow(session, leave.signal) }
    }),
  )

  const sent: string[] = []
  const sending: Promise<unknown>[] = []
  const deliveries: Delivery[] = ["steer", "steer", "steer", "queue", "now"]
  for (let round = 0; round < kills; round += 1) {
    const before = machine.server.requests.length
    for (const [index, { session }] of clients.slice(0, senders).entries()) {
      const inputID = `input-${round}-${index}`
      sent.push(inputID)
      const delivery = deliveries[(round + index) % deliveries.length]
      sending.push(pause(Math.random() * 300).then(() => session.send(inputID, { id: inputID, delivery })))
    }
    await until("the model answers", () => machine.server.requests.length > before)
    await pause(Math.random() * 300)
    served.child.kill("SIGKILL")
    expect(await served.ended).toMatchObject({ signal: "SIGKILL" })
    ;({ served } = await startServer(machine, Number(url.port)))
  }

  await Promise.all(sending)
  const [first] = clients
  if (!first) throw new Error("no client is attached")
  await first.session.inputs.resume()
  await first.session.wait()
  const { seq } = await first.session.info()
  for (const { view } of clients)
    await until("each client knows the last change", () => view.seen.at(-1) === seq)
  leave.abort()
  await Promise.all(clients.map(({ ended }) => ended))
  served.child.kill("SIGTERM")
  expect(await served.ended).toMatchObject({ signal: null })

  const store = await openSqliteStore(dataPaths(machine.data).database)
  const messages = await store.messages(id)
  expect(await store.inputs(id)).toEqual([])
  await store.close()
  for (const { view } of clients) {
    expect(view.messages).toEqual(messages)
    expect(view.seen).toEqual([...new Set(view.seen)].sort((a, b) => a - b))
  }
  const delivered = messages.flatMap(({ message, parts }) =>
    message.role === "user" ? parts.flatMap((part) => (part.type === "text" ? [part.text] : [])) : [],
  )
  expect(delivered.filter((text) => text.startsWith("input-")).sort()).toEqual(sent.sort())
})
