import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { createSocket } from "node:dgram"
import { once } from "node:events"
import { createServer, type Server } from "node:net"
import { join } from "node:path"
import type { RunningProcess } from "../util/process.ts"

/** An attempt to escape the sandbox. The result is observed from outside the sandbox, not reported by the attempt. */
export interface Probe {
  id: string
  /** Description for the user, such as `write a file outside the project`. */
  attempt: string
  /** Makes the attempt. Rejects if the attempt could not be made. */
  run(context: ProbeContext): Promise<ProbeOutcome>
}

/** The outcome of an attempt. `untested` means that this machine cannot run the attempt. */
export interface ProbeOutcome {
  outcome: "enforced" | "not enforced" | "untested"
  /** Additional information about the outcome. */
  detail?: string
}

/**
 * The environment for an attempt. In `inside`, all files are writable except `protected`. `secret` and `private` cannot
 * be read, and `missing` must not be created. `outside` is read-only. The network is closed.
 */
export interface ProbeContext {
  inside: string
  outside: string
  targets: ProbeTargets
  start(text: string): Promise<RunningProcess>
  /** Runs shell text, waits until it ends, and returns its output. */
  run(text: string, env?: Record<string, string>): Promise<string>
  /** Runs a script with the current Node executable and returns its output. */
  node(script: string): Promise<string>
}

/** Time in milliseconds that a probe waits for data that must not arrive. */
export const arrivalMs = 200

/** Returns the outcome of an attempt that could be made. */
export function outcomeOf(enforced: boolean): ProbeOutcome {
  return { outcome: enforced ? "enforced" : "not enforced" }
}

/** Returns the outcome of an attempt that could not be made. */
export function untested(detail: string): ProbeOutcome {
  return { outcome: "untested", detail }
}

/** Targets outside the sandbox: processes, and servers that record connections. */
export interface ProbeTargets {
  /** Ports of the servers. `ipv6` is undefined if this machine does not support IPv6. The DNS server never answers. */
  ipv4: number
  ipv6: number | undefined
  udp: number
  dns: number
  /** Path of a Unix socket, similar to Docker's socket. */
  unix: string
  /** Name of an abstract Unix socket, or undefined if the system does not support abstract sockets (macOS). */
  abstract: string | undefined
  /** A process whose environment contains `mark`. */
  observed: { pid: number; mark: string }
  /** A process that the attempts try to kill. */
  killable: { pid: number; alive(): boolean }
  /** Returns true if the target was reached. */
  reached(name: "ipv4" | "ipv6" | "udp" | "dns" | "unix" | "abstract"): boolean
  close(): Promise<void>
}

/** Starts the targets. Creates the Unix socket in `directory`. */
export async function startTargets(directory: string): Promise<ProbeTargets> {
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
  // Listening fails on a machine without IPv6.
  const ipv6 = await listen("ipv6", { host: "::1", port: 0 }).then(portOf, () => undefined)
  const unix = join(directory, "unix.sock")
  await listen("unix", { path: unix })
  const abstract = process.platform === "linux" ? `\0tackle-probe-${process.pid}-${ipv4}` : undefined
  if (abstract !== undefined) await listen("abstract", { path: abstract })
  const [udp, dns] = [await listenForDatagrams("udp"), await listenForDatagrams("dns")]
  const mark = randomBytes(12).toString("hex")
  const observed = spawn("/bin/sleep", ["30"], { env: { PROBE_MARK: mark }, stdio: "ignore" })
  const killable = spawn("/bin/sleep", ["30"], { env: {}, stdio: "ignore" })
  await Promise.all([once(observed, "spawn"), once(killable, "spawn")])

  return {
    observed: { pid: observed.pid ?? 0, mark },
    killable: {
      pid: killable.pid ?? 0,
      alive: () => killable.exitCode === null && killable.signalCode === null,
    },
    ipv4,
    ipv6,
    udp: udp.address().port,
    dns: dns.address().port,
    unix,
    abstract,
    reached: (name) => reached.has(name),
    async close() {
      observed.kill()
      killable.kill()
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
