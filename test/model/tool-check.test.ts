import { afterEach, expect, test } from "vitest"
import { openChatModel } from "../../src/model/chat-completions.ts"
import { httpFetch } from "../../src/model/http-fetch.ts"
import { checkTools } from "../../src/model/tool-check.ts"
import { type ModelServer, type Script, startModelServer } from "../../src/testing/model-server.ts"

let server: ModelServer | undefined
afterEach(async () => await server?.close())

/** Returns the findings for a server with this script: `yes`, `no` or `?` by name. */
async function check(script: Script): Promise<string[]> {
  server = await startModelServer({ script })
  const { url: baseURL } = server
  const model = await openChatModel({ baseURL, modelID: "m", headers: {}, body: {}, fetch: httpFetch })
  const findings = await checkTools(model, new AbortController().signal)
  return findings.map(({ name, holds }) => `${holds === undefined ? "?" : holds ? "yes" : "no"} ${name}`)
}

const call = (city: string) => ({ name: "weather", arguments: { city, country: "X" } })

test("reports a server that supports everything", async () => {
  const findings = await check([
    { calls: [call("Paris")] },
    { text: "31 degrees." },
    { calls: [call("Rome")], pieceSize: 5 },
    { calls: [call("Paris"), call("Rome")] },
  ])
  expect(findings).toEqual([
    "yes accepts tools",
    "yes returns tool_calls",
    "yes finish reason tool_calls",
    "yes arguments match the schema",
    "yes accepts role tool",
    "yes uses the result",
    "yes streams arguments in increments",
    "yes several calls at once",
  ])
})

test("reports a server with deviations", async () => {
  const findings = await check([
    { calls: [call("Paris")], finish: "stop" },
    { status: 400, text: "unknown role tool" },
    { calls: [call("Rome")] },
    { calls: [call("Paris")] },
  ])
  expect(findings.map((finding) => finding.split(" ")[0])).toEqual([
    "yes",
    "yes",
    "no",
    "yes",
    "no",
    "?",
    "no",
    "no",
  ])
})

test("reports missing arguments and unused results", async () => {
  const incomplete = { name: "weather", arguments: { city: "Paris" } }
  const findings = await check([{ calls: [incomplete] }, { text: "I know nothing." }, { status: 500 }, {}])
  expect(findings.slice(3, 6)).toEqual([
    "no arguments match the schema",
    "yes accepts role tool",
    "no uses the result",
  ])
})

test("reports servers that ignore or refuse tools", async () => {
  const ignoring = await check(() => ({ text: "Sunny." }))
  expect(ignoring.slice(0, 3)).toEqual([
    "yes accepts tools",
    "no returns tool_calls",
    "? finish reason tool_calls",
  ])
  await server?.close()
  const refusing = await check([{ status: 400, text: "registry/m does not support tools" }])
  expect(refusing.map((finding) => finding.split(" ")[0])).toEqual(["no", ...Array(7).fill("?")])
})

test("rejects with any other error", async () => {
  await expect(check([{ status: 401, text: "Wrong key." }])).rejects.toThrow("Wrong key.")
})
