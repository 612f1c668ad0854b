// Usage: node client.mjs <tool> '<arguments as JSON>'. If `tackle` is not on the PATH, set TACKLE to its path.
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"

const [tool = "read", input = '{"filePath":"notes.txt"}'] = process.argv.slice(2)
const server = spawn(process.env.TACKLE ?? "tackle", ["mcp", "serve", "--tools", "read,grep,glob"], {
  stdio: ["pipe", "pipe", "inherit"],
})
const waiting = new Map()
createInterface({ input: server.stdout }).on("line", (line) => {
  const { id, result, error } = JSON.parse(line)
  waiting.get(id)?.(error ?? result)
})

const send = (message) => server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)

function ask(method, params) {
  const id = waiting.size + 1
  return new Promise((resolve) => {
    waiting.set(id, resolve)
    send({ id, method, params })
  })
}

await ask("initialize", {
  protocolVersion: "2025-06-18",
  capabilities: {},
  clientInfo: { name: "example", version: "1" },
})
send({ method: "notifications/initialized" })
const { tools } = await ask("tools/list", {})
console.log(`tools: ${tools.map(({ name }) => name).join(", ")}`)
const result = await ask("tools/call", { name: tool, arguments: JSON.parse(input) })
console.log(result.content.map(({ text }) => text).join("\n"))
server.stdin.end()
