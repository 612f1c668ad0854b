import { readFileSync } from "node:fs"
import { join } from "node:path"
import { cpuMsOf, createHttpClient, memoryOf, type Service, startProcess, stopProcess } from "./service.ts"

/**
 * Starts `tackle serve` with a model at `url`. `command` is the path of `bin/tackle`. `home` is the project and
 * contains the data directory.
 */
export async function startTackleService(
  command: string,
  { url, home }: { url: string; home: string },
): Promise<Service> {
  const config = {
    sandbox: "off",
    permission: { "*": "allow" },
    model: "bench/m",
    provider: { bench: { options: { baseURL: url, apiKey: "k" }, models: { m: {} } } },
  }
  const { child, found } = await startProcess(command, ["serve", "--port", "0", "--format", "json"], {
    cwd: home,
    env: {
      PATH: process.env.PATH,
      HOME: home,
      TACKLE_DATA_DIR: join(home, "data"),
      TACKLE_CONFIG_CONTENT: JSON.stringify(config),
    },
    find: (line) => JSON.parse(line) as { url: string; tokenFile: string },
  })
  const token = readFileSync(found.tokenFile, "utf8").trim().split(/\s+/).at(-1) ?? ""
  const client = createHttpClient(found.url, { authorization: `Bearer ${token}` })
  const pid = child.pid ?? 0

  return {
    async createSession() {
      return String((await client.call("POST", "/session", { directory: home })).id)
    },
    async prompt(session, text) {
      await client.call("POST", `/session/${session}/input`, { text })
    },
    async idle(session) {
      await client.call("POST", `/session/${session}/wait?timeout=60`)
    },
    follow: (session, { onDelta, onNumber, onEnd }) =>
      client.follow(`/session/${session}/event?after=0`, ({ type, delta }, id) => {
        if (id !== undefined && id !== "") onNumber?.(Number(id))
        if (type === "part.delta") onDelta(String(delta))
        if (type === "run.completed") onEnd()
      }),
    memory: () => memoryOf(pid),
    cpuMs: () => cpuMsOf(pid),
    async [Symbol.asyncDispose]() {
      client.close()
      await stopProcess(child)
    },
  }
}
