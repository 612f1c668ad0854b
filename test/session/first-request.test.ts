import { expect, test } from "vitest"
import { startEngine } from "./engine.ts"
import { run } from "./run.ts"

/** Maximum size in bytes of what every prompt costs before the user has written anything. */
const limit = 14 * 1024

test("keeps the first request with every default tool below 14 KB", async () => {
  await using engine = await startEngine([{ text: "Done." }], { questions: true })
  await run(engine)
  const [request] = engine.server.requests
  const sent = request?.body.tools?.map((tool) => tool.function.name)
  const offered = (await engine.tackle.tools({ model: "test/m" })).filter((tool) => tool.offered)
  expect(sent).toEqual(offered.map(({ id }) => id))
  expect(sent).toEqual(
    expect.arrayContaining(["read", "edit", "bash", "task", "webfetch", "question", "todowrite"]),
  )
  expect(request?.bytes).toBeGreaterThan(5_000)
  expect(request?.bytes).toBeLessThanOrEqual(limit)
})
