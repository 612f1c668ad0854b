import { spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { setTimeout as pause } from "node:timers/promises"
import { expect, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { processScript } from "../process-scripts.ts"

/** Number of processes that are killed. */
const kills = Number(process.env.TACKLE_TEST_KILLS ?? 6)

test("no input is lost or delivered twice when processes that share a session are killed", {
  timeout: 60_000 + kills * 15_000,
}, async () => {
  await using disposer = new AsyncDisposableStack()
  const project = await temporaryProject()
  disposer.defer(() => project.remove())
  const server = await startModelServer({
    script: async ({ body: { messages } }) => {
      await pause(Math.random() * 40)
      return messages.at(-1)?.role === "user" && Math.random() < 0.5
        ? { calls: [{ name: "list", arguments: {} }] }
        : { text: "heard" }
    },
  })
  disposer.defer(() => server.close())
  const tackle = await createTackle({
    directory: project.directory,
    dataDirectory: project.path(".data"),
    model: "test/m",
    providers: { test: { options: { baseURL: server.url, apiKey: "k" }, models: { m: {} } } },
    permission: { "*": "allow" },
  })
  disposer.defer(() => tackle.close())
  const session = await tackle.sessions.create()
  const sent: string[] = []

  async function killOne(name: string): Promise<void> {
    const given = [
      processScript("test/session/input-process"),
      project.directory,
      server.url,
      session.id,
      name,
    ]
    const child = spawn(process.execPath, given, { stdio: ["ignore", "pipe", "inherit"] })
    const ended = once(child, "exit")
    const lines = createInterface(child.stdout)
    await once(lines, "line")
    lines.on("line", (id) => sent.push(id))
    await pause(Math.random() * 700)
    child.kill("SIGKILL")
    expect(await ended).toEqual([null, "SIGKILL"])
  }
  let next = 0
  const lane = async () => {
    while (next < kills) await killOne(`p${next++}`)
  }
  await Promise.all([lane(), lane()])

  await session.inputs.resume()
  await session.wait()
  expect(await session.inputs.list()).toEqual([])
  expect(sent.length).toBeGreaterThan(kills)
  const messages = await session.messages()
  const delivered = messages.flatMap(({ message, parts }) =>
    message.role === "user" ? parts.flatMap((part) => (part.type === "text" ? [part.text] : [])) : [],
  )
  expect(delivered.toSorted()).toEqual([...new Set(delivered)].sort())
  expect(delivered).toEqual(expect.arrayContaining(sent.map((id) => `input ${id}.`)))
  // Each call has a result, and each answer has ended.
  for (const { message, parts } of messages) {
    if (message.role === "assistant") expect(message.time.completed).toBeTypeOf("number")
    for (const part of parts)
      if (part.type === "tool") expect(part.state.status).toMatch(/^(completed|error)$/)
  }
  expect(await tackle.sessions.status(session.id)).toBe("idle")
})
