import { expect, test } from "vitest"
import { createShellRunner } from "../../src/tui/shell-runner.ts"
import { startEngine } from "../session/engine.ts"

test("shows only the permission requests of its own call, also if another call has the same command", async () => {
  await using engine = await startEngine([], { permission: { bash: "ask" } })
  const { tackle } = engine
  const shown = new Set<string>()
  const runner = createShellRunner({
    api: tackle,
    show() {},
    onRequests(requests) {
      for (const { id } of requests) shown.add(id)
    },
  })
  let asked = 0
  const both = Promise.withResolvers<void>()
  tackle.on("permission.asked", (request) => {
    asked += 1
    if (asked === 2) both.resolve()
    void both.promise.then(() => request.reply("reject"))
  })
  const command = "mkdir made"
  await Promise.all([
    runner.run(command, undefined),
    tackle.callTool({ tool: "bash", input: { command, description: "make" } }),
  ])
  expect(asked).toBe(2)
  expect(shown.size).toBe(1)
})
