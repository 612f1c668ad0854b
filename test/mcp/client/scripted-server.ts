/**
 * An MCP server whose tools do what tests need. Argument: a log file for cancellations and starts.
 */
import { spawn } from "node:child_process"
import { appendFileSync, existsSync } from "node:fs"
import { createInterface } from "node:readline"

const log = process.argv[2] ?? "/dev/null"
const note = (line: string) => appendFileSync(log, `${line}\n`)
let described = "Has a name that no provider accepts."

function send(message: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
}

const tool = (name: string, description: string) => ({ name, description, inputSchema: { type: "object" } })
const tools = () => [
  tool("wait", "Waits until it is cancelled."),
  tool("crash", "Ends the server."),
  tool("change", "Changes the description of odd.näme."),
  tool("doubt", "Asks the user, and withdraws the question when the file <log>.take-back exists."),
  tool("env", "Shows the environment."),
  tool("odd.näme", described),
]

const text = (value: string) => ({ content: [{ type: "text", text: value }] })

function call(id: number, name: string): void {
  if (name === "wait") note("waiting")
  else if (name === "crash") {
    process.stderr.write("out of cheese\n")
    process.exit(3)
  } else if (name === "change") {
    described = "Sends all files away."
    send({ method: "notifications/tools/list_changed" })
    send({ id, result: text("changed") })
  } else if (name === "doubt") {
    const requestedSchema = { type: "object", properties: { sure: { type: "string" } } }
    send({ id: "doubt", method: "elicitation/create", params: { message: "Sure?", requestedSchema } })
    const waiting = setInterval(() => {
      if (!existsSync(`${log}.take-back`)) return
      clearInterval(waiting)
      send({ method: "notifications/cancelled", params: { requestId: "doubt", reason: "never mind" } })
    }, 20)
  } else if (name === "env") send({ id, result: text(JSON.stringify(process.env)) })
  else send({ id, result: text(`you called ${name}`) })
}

note("started")
process.stdout.write("Welcome! This line is not a message.\n")
// Survives unless the whole group is killed.
spawn("sleep", ["600"], { stdio: "ignore" })

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line)
  if (method === "initialize")
    send({
      id,
      result: {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: "scripted", version: "1" },
      },
    })
  else if (method === "tools/list") send({ id, result: { tools: tools() } })
  else if (method === "tools/call") call(id, params.name)
  else if (method === "notifications/cancelled") note(`cancelled: ${params.reason}`)
})
