import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { Agent, type ClientRequest, request } from "node:http"
import { join } from "node:path"
import { createInterface } from "node:readline"

/** A `tackle serve` process in an empty project. */
export interface Service extends AsyncDisposable {
  /** Directory of the project. */
  directory: string
  /** Sends a request and returns the parsed answer. Throws for a status of 400 or above. */
  call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>
  /** Follows an event stream. `onEvent` receives the parsed data of each event and its id, if any. */
  follow(
    path: string,
    onEvent: (event: Record<string, unknown>, id: string | undefined) => void,
  ): Promise<() => void>
  /** Returns the resident memory of the process in bytes. */
  memory(): number
  /** Returns the CPU time of the process in ms. */
  cpuMs(): number
}

/**
 * Starts `tackle serve` with a model at `url`. `command` is the path of `bin/tackle`. `home` is the project and keeps the
 * data.
 */
export async function startService(
  command: string,
  { url, home: directory }: { url: string; home: string },
): Promise<Service> {
  const config = {
    sandbox: "off",
    permission: { "*": "allow" },
    model: "bench/m",
    provider: { bench: { options: { baseURL: url, apiKey: "k" }, models: { m: {} } } },
  }
  const child = spawn(command, ["serve", "--port", "0", "--format", "json"], {
    cwd: directory,
    env: {
      PATH: process.env.PATH,
      HOME: directory,
      TACKLE_DATA_DIR: join(directory, "data"),
      TACKLE_CONFIG_CONTENT: JSON.stringify(config),
    },
    stdio: ["ignore", "pipe", "inherit"],
  })
  const started = await firstLine(child)
  const { url: origin, tokenFile } = JSON.parse(started) as { url: string; tokenFile: string }
  const token = readFileSync(tokenFile, "utf8").trim().split(/\s+/).at(-1) ?? ""
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })
  const headers = { authorization: `Bearer ${token}` }
  const pid = child.pid ?? 0

  function send(method: string, path: string, accept: string): ClientRequest {
    return request(new URL(path, origin), {
      agent,
      method,
      headers: { ...headers, accept, ...(method !== "GET" && { "content-type": "application/json" }) },
    })
  }

  return {
    directory,
    async call(method, path, body) {
      const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>()
      const sent = send(method, path, "application/json")
      sent.on("error", reject)
      sent.on("response", (response) => {
        let text = ""
        response.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk
        })
        response.on("end", () => {
          if ((response.statusCode ?? 500) >= 400)
            reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`))
          else resolve(text === "" ? {} : (JSON.parse(text) as Record<string, unknown>))
        })
      })
      sent.end(body === undefined ? undefined : JSON.stringify(body))
      return promise
    },
    async follow(path, onEvent) {
      const { promise, resolve, reject } = Promise.withResolvers<() => void>()
      const sent = send("GET", path, "text/event-stream")
      sent.on("error", reject)
      sent.on("response", (response) => {
        if (response.statusCode !== 200) reject(new Error(`GET ${path}: ${response.statusCode}`))
        let rest = ""
        response.setEncoding("utf8").on("data", (chunk: string) => {
          const blocks = (rest + chunk).split("\n\n")
          rest = blocks.pop() ?? ""
          for (const block of blocks) {
            const data = /^data: ?(.*)$/m.exec(block)?.[1]
            if (data) onEvent(JSON.parse(data) as Record<string, unknown>, /^id: ?(.*)$/m.exec(block)?.[1])
          }
        })
        resolve(() => sent.destroy())
      })
      sent.end()
      return promise
    },
    memory: () =>
      Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024,
    cpuMs() {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
      // The kernel counts in hundredths of a second.
      return (Number(fields[11]) + Number(fields[12])) * 10
    },
    async [Symbol.asyncDispose]() {
      agent.destroy()
      const ended = new Promise((resolve) => child.once("exit", resolve))
      child.kill("SIGTERM")
      await ended
    },
  }
}

async function firstLine(child: ChildProcess): Promise<string> {
  if (!child.stdout) throw new Error("The service has no output.")
  for await (const line of createInterface({ input: child.stdout })) return line
  throw new Error(`The service ended with code ${child.exitCode}.`)
}
