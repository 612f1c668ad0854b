import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { createSocket } from "node:dgram"
import { once } from "node:events"
import { createServer, type Server } from "node:net"
import { join } from "node:path"

/** What is to be reached from within a sandbox: real servers that note whoever comes, and a process of somebody else. */
export interface Surroundings {
  /** Ports; undefined where this machine has no such network. */
  ipv4: number
  ipv6: number | undefined
  udp: number
  /** A server for names: notes that it was asked, and never answers. */
  dns: number
  /** A Unix socket in the file system, as Docker's. */
  unix: string
  /** One without a file; undefined where the system has none (macOS). */
  abstract: string | undefined
  /** A process outside; `mark` stands in its environment. */
  stranger: { pid: number; mark: string }
  /** Another one: attempts to end it may succeed, while others still look at the first. */
  victim: { pid: number; alive(): boolean }
  /** What was reached so far. */
  reached(name: "ipv4" | "ipv6" | "udp" | "dns" | "unix" | "abstract"): boolean
  close(): Promise<void>
}

/** `directory`: for the socket that is a file. */
export async function startSurroundings(directory: string): Promise<Surroundings> {
  const reached = new Set<string>()
  const servers: Server[] = []

  async function listen(
    name: string,
    where: { host: string; port: number } | { path: string },
  ): Promise<Server> {
    const server = createServer((socket) => {
      reached.add(name)
      socket.on("error", () => {})
      socket.destroy()
    })
    server.listen(where)
    await once(server, "listening")
    servers.push(server)
    return server
  }

  async function listenForDatagrams(name: string) {
    const socket = createSocket("udp4", () => reached.add(name))
    socket.bind(0, "127.0.0.1")
    await once(socket, "listening")
    return socket
  }

  const ipv4 = portOf(await listen("ipv4", { host: "127.0.0.1", port: 0 }))
  // Without IPv6 there is nothing to listen on, and nothing to try.
  const ipv6 = await listen("ipv6", { host: "::1", port: 0 }).then(portOf, () => undefined)
  const unix = join(directory, "unix.sock")
  await listen("unix", { path: unix })
  const abstract = process.platform === "linux" ? `\0tackle-probe-${process.pid}-${ipv4}` : undefined
  if (abstract !== undefined) await listen("abstract", { path: abstract })
  const [udp, dns] = [await listenForDatagrams("udp"), await listenForDatagrams("dns")]
  const mark = randomBytes(12).toString("hex")
  const stranger = spawn("/bin/sleep", ["60"], { env: { PROBE_MARK: mark }, stdio: "ignore" })
  const victim = spawn("/bin/sleep", ["60"], { env: {}, stdio: "ignore" })
  await Promise.all([once(stranger, "spawn"), once(victim, "spawn")])

  return {
    stranger: { pid: stranger.pid ?? 0, mark },
    victim: {
      pid: victim.pid ?? 0,
      alive: () => victim.exitCode === null && victim.signalCode === null,
    },
    ipv4,
    ipv6,
    udp: udp.address().port,
    dns: dns.address().port,
    unix,
    abstract,
    reached: (name) => reached.has(name),
    async close() {
      stranger.kill()
      victim.kill()
      udp.close()
      dns.close()
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
    },
  }
}

function portOf(server: Server): number {
  const address = server.address()
  if (typeof address !== "object" || address === null) throw new Error("the server has no port")
  return address.port
}
