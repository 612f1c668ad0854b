/**
 * A language server that fails on purpose. The first argument says how: `mute` never answers; `hang` answers nothing
 * after its start; `exit` exits at once with a message on stderr; `garbage` writes invalid messages; `prose` writes only text; `die-once FILE`
 * exits at the first request unless FILE exists; `stubborn` answers but ignores shutdown; `tsserver` passes requests on
 * to a TypeScript that accepts only plain paths and reports the first word of every file; `no-tsserver` has no
 * TypeScript and publishes diagnostics.
 */
import { existsSync, writeFileSync } from "node:fs"
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node"

const [manner = "", file = ""] = process.argv.slice(2)

if (manner === "exit") {
  process.stderr.write("the licence has run out\n")
  process.exit(3)
}
if (manner === "garbage") process.stdout.write("Listening…\n\nContent-Length: soon\r\n\r\n{}")
if (manner === "prose") process.stdout.write("Listening on port 3000\n")
if (manner === "stubborn") process.on("SIGTERM", () => {})

const connection = createMessageConnection(
  new StreamMessageReader(process.stdin),
  new StreamMessageWriter(process.stdout),
)
const never = new Promise<never>(() => {})
const keepAlive = setInterval(() => {}, 60_000)

const asksTypescript = manner.endsWith("tsserver")
const executeCommandProvider = { commands: ["typescript.tsserverRequest"] }

connection.onRequest("initialize", (): unknown =>
  ["mute", "garbage", "prose"].includes(manner)
    ? never
    : { capabilities: { hoverProvider: true, ...(asksTypescript ? { executeCommandProvider } : {}) } },
)
connection.onRequest("workspace/executeCommand", ({ arguments: [request, { file }] }): unknown => {
  if (manner === "no-tsserver" || !file.startsWith("/")) return null
  const [start, end] = [1, 4].map((offset) => ({ line: 1, offset }))
  const fault = { message: "it was asked for", category: "error", startLocation: start, endLocation: end }
  return { body: request === "semanticDiagnosticsSync" ? [fault] : [] }
})
connection.onNotification("textDocument/didOpen", ({ textDocument: { uri } }) => {
  if (manner !== "no-tsserver") return
  const range = { start: { line: 0, character: 0 }, end: { line: 0, character: 3 } }
  const diagnostics = [{ range, severity: 1, message: "it was published" }]
  void connection.sendNotification("textDocument/publishDiagnostics", { uri, diagnostics })
})
connection.onRequest("textDocument/hover", (): unknown => {
  if (manner === "hang") return never
  if (manner === "die-once" && !existsSync(file)) {
    writeFileSync(file, "")
    process.kill(process.pid, "SIGKILL")
  }
  return { contents: `here is ${process.pid}` }
})
connection.onRequest("shutdown", () => (manner === "stubborn" ? never : null))
connection.onNotification("exit", () => {
  clearInterval(keepAlive)
  process.exit(0)
})
connection.listen()
