// The floor of the benchmark: the least a client can do to run tools for a model. It posts chat completions, parses
// the stream, runs the calls, appends the results and repeats. Nothing is checked, asked, recorded or shown.
// Plain JavaScript, so that no type stripping is counted.
//
//   node bench/floor.mjs <base URL> <prompt>

import { spawn } from "node:child_process"
import { readFile, writeFile } from "node:fs/promises"

const keptBytes = 51_200
const drainMs = 10

const tool = (name, ...fields) => ({
  type: "function",
  function: {
    name,
    parameters: {
      type: "object",
      properties: Object.fromEntries(fields.map((field) => [field, { type: "string" }])),
      required: fields,
    },
  },
})

const tools = [tool("read", "filePath"), tool("bash", "command"), tool("write", "filePath", "content")]

const run = {
  read: ({ filePath }) => readFile(filePath, "utf8"),
  write: async ({ filePath, content }) => {
    await writeFile(filePath, content)
    return "Wrote the file."
  },
  bash: ({ command }) => bash(command),
}

const [url, prompt] = process.argv.slice(2)
const messages = [{ role: "user", content: prompt }]

for (;;) {
  const { text, calls } = await ask()
  if (calls.length === 0) {
    process.stdout.write(`${text}\n`)
    break
  }
  messages.push({ role: "assistant", content: text || null, tool_calls: calls })
  const results = await Promise.all(calls.map(execute))
  for (const [position, content] of results.entries()) {
    messages.push({ role: "tool", tool_call_id: calls[position].id, content })
  }
}

async function ask() {
  const response = await fetch(`${url}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer k" },
    body: JSON.stringify({ model: "m", stream: true, messages, tools }),
  })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  let text = ""
  const calls = []
  for await (const data of dataLines(response.body)) {
    const delta = JSON.parse(data).choices[0]?.delta
    if (delta?.content) text += delta.content
    for (const piece of delta?.tool_calls ?? []) {
      const call = calls[piece.index]
      if (call) call.function.arguments += piece.function.arguments
      else calls[piece.index] = { id: piece.id, type: piece.type, function: piece.function }
    }
  }
  return { text, calls }
}

async function* dataLines(body) {
  const decoder = new TextDecoder()
  let rest = ""
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n")
    rest = lines.pop()
    for (const line of lines) {
      if (line.startsWith("data: ") && line !== "data: [DONE]") yield line.slice(6)
    }
  }
}

async function execute(call) {
  try {
    return await run[call.function.name](JSON.parse(call.function.arguments))
  } catch (error) {
    return `Error: ${error.message}`
  }
}

/** Returns the start of the command's output when the shell ends. Kills the processes that the command left behind. */
function bash(command) {
  return new Promise((resolve, reject) => {
    const child = spawn("bash", ["-c", command], { detached: true, stdio: ["ignore", "pipe", "pipe"] })
    const kept = []
    let bytes = 0
    const keep = (chunk) => {
      if (bytes < keptBytes) kept.push(chunk)
      bytes += chunk.length
    }
    child.stdout.on("data", keep)
    child.stderr.on("data", keep)
    child.once("error", reject)
    child.once("exit", () => {
      const timer = setTimeout(finish, drainMs)
      child.once("close", finish)
      function finish() {
        clearTimeout(timer)
        child.off("close", finish)
        child.stdout.destroy()
        child.stderr.destroy()
        killGroup(child.pid)
        resolve(`${Buffer.concat(kept).subarray(0, keptBytes)}\n${bytes} bytes`)
      }
    })
  })
}

function killGroup(pid) {
  try {
    process.kill(-pid, "SIGKILL")
  } catch (error) {
    if (error.code !== "ESRCH") throw error
  }
}
