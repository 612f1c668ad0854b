import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { Agent, type ClientRequest, request } from "node:http"
import { createInterface } from "node:readline"

/** A program's HTTP server, which runs sessions in an empty project. */
export interface Service extends AsyncDisposable {
  /** Creates a session and returns its id. */
  createSession(): Promise<string>
  /** Sends a prompt. Resolves when the service has accepted it. */
  prompt(session: string, text: string): Promise<void>
  /** Resolves when the session has finished the prompts that it accepted. */
  idle(session: string): Promise<void>
  /** Follows a session, with a separate connection if the service has a stream per session. */
  follow(session: string, listener: SessionListener): Promise<() => void>
  /** Returns the resident memory of the server process in bytes. */
  memory(): number
  /** Returns the CPU time of the server process in ms. */
  cpuMs(): number
}

/** Receives the events of one session. */
export interface SessionListener {
  /** Called with streamed text. */
  onDelta(text: string): void
  /** Called with the number of each event that has a number. The numbers increase within a session. */
  onNumber?(seq: number): void
  /** Called at the end of a run. */
  onEnd(): void
}

/**
 * Starts a process and waits for the first line of its output for which `find` returns a value. Throws if the process
 * exits first.
 */
export async function startProcess<T>(
  command: string,
  args: readonly string[],
  options: SpawnOptions & { find(line: string): T | undefined },
): Promise<{ child: ChildProcess; found: T }> {
  const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "inherit"] })
  if (!child.stdout) throw new Error("The service has no output.")
  const lines = createInterface({ input: child.stdout })
  for await (const line of lines) {
    const found = options.find(line)
    if (found === undefined) continue
    // The output must be read, or the process blocks.
    child.stdout.resume()
    return { child, found }
  }
  throw new Error(`The service ended with code ${child.exitCode}.`)
}

/** Sends SIGTERM and waits until the process has exited. */
export async function stopProcess(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit")
  child.kill("SIGTERM")
  await ended
}

/** Returns the resident memory of a process in bytes. */
export function memoryOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8")
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024
}

/** Returns the CPU time of a process in ms. */
export function cpuMsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  // The kernel counts in hundredths of a second.
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** An HTTP client that keeps its connections open. */
export interface HttpClient {
  /** Sends a request and returns the parsed answer. Throws for a status of 400 or above. */
  call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>
  /** Follows an event stream. `onEvent` receives the parsed data of each event and its id, if any. */
  follow(
    path: string,
    onEvent: (event: Record<string, unknown>, id: string | undefined) => void,
  ): Promise<() => void>
  close(): void
}

/** Creates a client for the service at `origin`. */
export function createHttpClient(origin: string, headers: Record<string, string> = {}): HttpClient {
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })

  function send(method: string, path: string, accept: string): ClientRequest {
    return request(new URL(path, origin), {
      agent,
      method,
      headers: { ...headers, accept, ...(method !== "GET" && { "content-type": "application/json" }) },
    })
  }

  return {
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
    close: () => agent.destroy(),
  }
}
