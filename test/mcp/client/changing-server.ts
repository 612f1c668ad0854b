/**
 * An MCP server with one resource, the content of a file. Arguments: the file, which it checks ten times a second, and
 * a log file for subscriptions.
 */
import { appendFileSync, readFileSync } from "node:fs"
import { createInterface } from "node:readline"

const [, , file = "", log = "/dev/null"] = process.argv
const uri = "news://today"
const read = () => readFileSync(file, "utf8")
const subscribed = new Set<string>()
let known = read()

function send(message: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
}

const answers: Record<string, (params: { uri: string; protocolVersion?: string }) => unknown> = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {}, resources: { subscribe: true } },
    serverInfo: { name: "changing", version: "1" },
  }),
  "tools/list": () => ({ tools: [{ name: "crash", inputSchema: { type: "object" } }] }),
  "resources/list": () => ({ resources: [{ uri, name: "news" }] }),
  "resources/templates/list": () => ({ resourceTemplates: [] }),
  "resources/read": () => ({ contents: [{ uri, text: read() }] }),
  "resources/subscribe": (params) => note("subscribe", () => subscribed.add(params.uri)),
  "resources/unsubscribe": (params) => note("unsubscribe", () => subscribed.delete(params.uri)),
  "tools/call": () => process.exit(3),
}

function note(line: string, act: () => unknown): object {
  act()
  appendFileSync(log, `${line}\n`)
  return {}
}

setInterval(() => {
  const now = read()
  if (now === known) return
  known = now
  if (subscribed.has(uri)) send({ method: "notifications/resources/updated", params: { uri } })
}, 100)

createInterface({ input: process.stdin })
  .on("line", (line) => {
    const { id, method, params } = JSON.parse(line)
    const answer = answers[method]
    if (answer && id !== undefined) send({ id, result: answer(params) })
  })
  .on("close", () => process.exit(0))
