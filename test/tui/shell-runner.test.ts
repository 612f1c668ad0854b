import { existsSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { createShellRunner } from "../../src/tui/shell-runner.ts"
import { startEngine } from "../session/engine.ts"

test("allows only its own call, also if another call has the same command", async () => {
  await using engine = await startEngine([], { permission: { bash: "ask" } })
  const { tackle } = engine
  const runner = createShellRunner({ api: tackle, show() {} })
  const others: Promise<unknown>[] = []
  tackle.on("permission.asked", (request) => {
    const other = tackle.pendingRequests().find(({ id }) => id === request.id)
    // The runner has already answered its own request.
    if (other) others.push(request.reply("reject"))
  })
  const command = "mkdir made"
  const [own, other] = await Promise.all([
    runner.run(command, undefined),
    tackle.callTool({ tool: "bash", input: { command, description: "make" } }),
  ])
  expect(own.status).toBe("completed")
  expect(other.state.status).toBe("error")
  expect(others).toHaveLength(1)
})

test("does not run a command that a rule denies", async () => {
  await using engine = await startEngine([], { permission: { bash: { "*": "ask", "mkdir *": "deny" } } })
  const runner = createShellRunner({ api: engine.tackle, show() {} })
  expect(await runner.run("mkdir made", undefined)).toMatchObject({
    status: "error",
    error: expect.stringContaining("mkdir *"),
  })
  expect(existsSync(join(engine.tackle.directory, "made"))).toBe(false)
})
