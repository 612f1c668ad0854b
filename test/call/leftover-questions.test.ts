import { expect, test } from "vitest"
import { startEngine } from "../session/engine.ts"
import { resultsOf, run, tool } from "../session/run.ts"

test("withdraws a question that the tool did not wait for", async () => {
  const heard: string[] = []
  const asked = Promise.withResolvers<void>()
  const hasty = tool("hasty", async (_, ctx) => {
    ctx.ask({ permission: "edit", patterns: ["x"], always: ["*"] }).then(
      () => heard.push("allowed"),
      (error: Error) => heard.push(error.message),
    )
    await asked.promise
    return { title: "hasty", output: "done" }
  })
  const look = tool("look", async () => {
    const waiting = engine.tackle.pendingRequests().length
    return { title: "look", output: `${waiting} waiting, heard: ${heard}` }
  })
  const script = [
    { calls: [{ name: "hasty", arguments: {} }] },
    { calls: [{ name: "look", arguments: {} }] },
    { text: "Done." },
  ]
  const permission = { hasty: "allow", look: "allow" } as const
  await using engine = await startEngine(script, { tools: [hasty, look], permission })
  engine.tackle.on("permission.asked", () => asked.resolve())
  const { session } = await run(engine)
  expect(await resultsOf(session)).toEqual(["done", expect.stringMatching(/^0 waiting, heard: .*has ended/)])
})
