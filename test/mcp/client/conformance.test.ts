import { resolve } from "node:path"
import { expect, test } from "vitest"
import { startProcess } from "../../../src/util/process.ts"
import { processScript } from "../../process-scripts.ts"
import { isComplete } from "../../runs.ts"

const root = resolve(import.meta.dirname, "../../..")

/** One scenario of each kind in CI, two otherwise. `npm run conformance:mcp` runs all in half a minute. */
const scenarios = [
  "tools_call",
  "auth/scope-step-up",
  ...(isComplete ? ["elicitation-sep1034-client-defaults", "sse-retry"] : []),
]

test.each(scenarios)("passes the official scenario %s", async (scenario) => {
  let said = ""
  const client = `${process.execPath} ${processScript("scripts/mcp-conformance-client")}`
  const suite = await startProcess({
    argv: [`${root}/node_modules/.bin/conformance`, "client", "--scenario", scenario, "--command", client],
    cwd: root,
    env: process.env,
    onOutput: (bytes) => {
      said += Buffer.from(bytes).toString()
    },
  })
  expect((await suite.exited).code, said).toBe(0)
})
