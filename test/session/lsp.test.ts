import { expect, test } from "vitest"
import { markedEnvironment } from "../lsp/processes.ts"
import { realServers } from "../lsp/servers.ts"
import { startEngine } from "./engine.ts"
import { resultsOf, run, tool } from "./run.ts"

const files = {
  "tsconfig.json": "{}",
  "a.ts": "export const one: number = 1\nexport const two = one + one\n",
}
const hover = { name: "lsp", arguments: { operation: "hover", filePath: "a.ts", line: 1, character: 14 } }

test("shares one language server across sessions, and closes it with the engine", async () => {
  const { environment, running } = markedEnvironment()
  const broken = { filePath: "a.ts", oldString: "= one + one", newString: ": string = one" }
  const engine = await startEngine(
    [
      { calls: [{ name: "read", arguments: { filePath: "a.ts" } }, hover] },
      { calls: [{ name: "edit", arguments: broken }] },
      { text: "Done." },
      { calls: [hover] },
      { text: "Done." },
    ],
    {
      files,
      environment,
      permission: "allow",
      lsp: realServers.native,
      experimental: { lsp_tool: true },
    },
  )
  const first = await run(engine)
  const [, type, edited] = await resultsOf(first.session)
  expect(type).toContain("const one: number")
  expect(edited).toMatch(/The language server now reports:\na\.ts:2:14 error 2322: /)
  const before = running()
  expect(before).not.toEqual([])

  const second = await run(engine)
  expect(await resultsOf(second.session)).toEqual([expect.stringContaining("const one: number")])
  expect(running()).toEqual(before)
  await engine[Symbol.asyncDispose]()
  expect(running()).toEqual([])
}, 120_000)

test("gives no language servers to third-party tools", async () => {
  let given: unknown = "not called"
  const peek = tool("peek", (_, ctx) => {
    given = ctx.lsp
    return { title: "", output: "" }
  })
  await using engine = await startEngine([{ calls: [{ name: "peek", arguments: {} }] }, { text: "Done." }], {
    tools: [peek],
    permission: "allow",
    experimental: { lsp_tool: true },
  })
  await run(engine)
  expect(given).toBeUndefined()
})
