/** An MCP server whose replies do not follow the protocol. The name of a called tool says how. */
import { closeSync } from "node:fs"
import { createInterface } from "node:readline"

const tool = (name: string) => ({ name, description: name, inputSchema: { type: "object" } })
const names = ["null", "text-error", "empty", "no-json", "no-id", "large", "eof", "chatter", "silent", "fine"]

const write = (text: string) => process.stdout.write(`${text}\n`)
const send = (message: object) => write(JSON.stringify({ jsonrpc: "2.0", ...message }))

function call(id: number, name: string, token: unknown): void {
  if (name === "null") send({ id, result: null })
  else if (name === "text-error") send({ id, error: "it broke" })
  else if (name === "empty") send({ id })
  else if (name === "no-json") write(`{"jsonrpc":"2.0","id":${id},"result":{"content":[}`)
  else if (name === "no-id") send({ id: null, error: { code: -32700, message: "cannot parse this" } })
  else if (name === "large")
    send({ id, result: { content: [{ type: "text", text: "x".repeat(100 * 1024 * 1024) }] } })
  else if (name === "eof") {
    closeSync(1)
    setInterval(() => {}, 1000)
  } else if (name === "chatter")
    setInterval(
      () => send({ method: "notifications/progress", params: { progressToken: token, progress: 1 } }),
      20,
    )
  else if (name === "fine") send({ id, result: { content: [{ type: "text", text: "fine" }] } })
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line)
  if (method === "initialize") {
    const { protocolVersion } = params
    send({
      id,
      result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "odd", version: "1" } },
    })
  } else if (method === "tools/list") {
    const odd = [{ name: "odd", inputSchema: { type: "string" } }, { inputSchema: {} }, "no tool"]
    send({ id, result: { tools: [...odd, ...names.map(tool)] } })
  } else if (method === "tools/call") call(id, params.name, params._meta?.progressToken)
})
