import { resolve } from "node:path"
import { expect, test } from "vitest"
import { startProcess } from "../../../src/util/process.ts"
import { processScript } from "../../process-scripts.ts"

const root = resolve(import.meta.dirname, "../../..")

/** One scenario of each kind. `npm run conformance:mcp` runs all in half a minute. */
test.each(["tools_call", "elicitation-sep1034-client-defaults", "sse-retry", "auth/scope-step-up"])(
  "passes the official scenario %s",
  async (scenario) => {
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
  },
)
