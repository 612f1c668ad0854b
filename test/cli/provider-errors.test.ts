import { expect, test } from "vitest"
import type { Reply } from "../../src/testing/reply.ts"
import { createMachine, endOf, eventsOf, modelConfig, only } from "./run-tackle.ts"

test("reports a failing model server with its address, and shows the attempts", async () => {
  const replies: Record<string, Reply[]> = {
    hang: [{ fault: "hang" }],
    "hang-mid": [{ text: "half an answer", pieceSize: 2, fault: "hang-mid" }],
    cut: [{ text: "half an answer", pieceSize: 2, fault: "cut" }],
    garbage: [{ text: "half an answer", pieceSize: 2, fault: "garbage" }],
    html: [{ fault: "html" }],
    page: [{ fault: "html", status: 502 }],
    reset: [{ fault: "reset" }],
    "no-finish": [{ text: "half an answer", pieceSize: 2, fault: "no-finish" }],
    overflow: [{ status: 400, text: "This model's maximum context length is 8192 tokens." }],
    missing: [{ status: 404, text: "model m not found" }],
  }
  const machine = await createMachine({
    config: { retry: { maxAttempts: 1 } },
    script: ({ body }) => replies[String(body.messages.at(-1)?.content)]?.[0] ?? {},
  })
  const names = Object.keys(replies)
  const impatient = {
    ...modelConfig(machine.server.url),
    retry: { maxAttempts: 1 },
    timeout: { firstByteSeconds: 0.5, idleSeconds: 0.5 },
  }
  const hasty = { TACKLE_CONFIG_CONTENT: JSON.stringify(impatient) }
  const runs = await Promise.all(
    names.map((name) =>
      machine.run(["run", "--format", "json", name], name.startsWith("hang") ? { env: hasty } : {}),
    ),
  )
  const told: Record<string, string> = {}
  for (const [index, run] of runs.entries()) {
    expect(endOf(run), names[index]).toMatchObject({ status: "failed", exitCode: 1 })
    const [error] = only(eventsOf(run), "session.error")
    told[names[index] ?? ""] = error?.error.message ?? ""
    expect(run.stderr).toBe("")
  }
  expect(told.hang).toMatch(
    /test\/m: the server sent nothing for 0\.5 s\. If it needs more time, increase timeout\.firstByteSeconds in the config/,
  )
  expect(told["hang-mid"]).toMatch(/test\/m.*0\.5 s/)
  expect(told.cut).toMatch(/test\/m: 127\.0\.0\.1:\d+ ended its answer early \(\w+\)\.$/)
  expect(told.garbage).toMatch(/test\/m: .*invalid answer/)
  expect(told.html).toMatch(/test\/m: .*baseURL/)
  expect(told.page).toMatch(/returned 502: Bad gateway/)
  expect(told.reset).toMatch(/test\/m: the connection to 127\.0\.0\.1:\d+ failed/)
  expect(told["no-finish"]).toMatch(/test\/m: /)
  expect(told.overflow).toMatch(/maximum context length.*too long for this model/)
  expect(told.missing).toMatch(/returned 404: model m not found\. Check the model's name/)
})

test("waits for a recovering server as long as it asks, and drops the failed attempt", async () => {
  const machine = await createMachine({
    script: [
      { status: 429, text: "Slow down.", headers: { "retry-after": "1" } },
      { text: "half an answer", pieceSize: 2, fault: "cut" },
      { text: "Whole." },
      { status: 429, text: "Slow down.", headers: { "retry-after": "4000" } },
    ],
  })
  const run = await machine.run(["run", "--format", "json", "hi"])
  const end = endOf(run)
  expect(end).toMatchObject({ status: "completed", exitCode: 0, text: "Whole." })
  const retries = only(eventsOf(run), "part.updated").flatMap(({ part }) =>
    part.type === "retry" ? [part] : [],
  )
  expect(retries).toMatchObject([
    { attempt: 1, delayMs: 1000, error: expect.stringContaining("Slow down.") },
    { attempt: 2 },
  ])
  const [first, second] = machine.server.requests
  expect((second?.time ?? 0) - (first?.time ?? 0)).toBeGreaterThanOrEqual(990)

  const refused = await machine.run(["run", "hi"])
  expect(refused.code).toBe(1)
  expect(refused.stderr).toMatch(/returned 429: Slow down\. The server asks you to wait 67 min\./)
})

test("ends the run at once when nothing listens, and asks whether the server is running", async () => {
  const machine = await createMachine()
  await machine.server.close()
  const run = await machine.run(["run", "hi"])
  expect(run).toMatchObject({ code: 1, stdout: "" })
  expect(run.stderr).toMatch(
    /^✗ test\/m: the connection to 127\.0\.0\.1:\d+ failed: .*Check that the model server is running\.$/m,
  )
})
