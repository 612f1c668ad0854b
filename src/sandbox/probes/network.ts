import { setTimeout as delay } from "node:timers/promises"
import { arrivalMs, held, type Probe, untested } from "../probe-scene.ts"

/** Attempts to reach what listens outside. */
export const networkProbes: readonly Probe[] = [
  ...(["ipv4", "ipv6"] as const).map(
    (name): Probe => ({
      id: name,
      attempt: `reach a server by ${name === "ipv4" ? "IPv4" : "IPv6"}`,
      async run({ node, surroundings }) {
        const port = surroundings[name]
        if (port === undefined) return untested("this machine has no IPv6")
        const host = name === "ipv4" ? "127.0.0.1" : "::1"
        await node(connectScript({ port, host }))
        return held(!surroundings.reached(name))
      },
    }),
  ),
  {
    id: "udp",
    attempt: "send a datagram",
    async run({ node, surroundings }) {
      await node(
        `const s = require("dgram").createSocket("udp4"); s.send("x", ${surroundings.udp}, "127.0.0.1", () => s.close())`,
      )
      await delay(arrivalMs)
      return held(!surroundings.reached("udp"))
    },
  },
  {
    id: "dns",
    attempt: "ask for an address by name",
    async run({ node, surroundings }) {
      const server = JSON.stringify(`127.0.0.1:${surroundings.dns}`)
      await node(
        `const r = new (require("dns").Resolver)({ timeout: 200, tries: 1 }); r.setServers([${server}]); r.resolve4("example.test", () => {})`,
      )
      return held(!surroundings.reached("dns"))
    },
  },
  {
    id: "unix-socket",
    attempt: "reach a socket such as Docker's",
    async run({ node, surroundings }) {
      await node(connectScript({ path: surroundings.unix }))
      return held(!surroundings.reached("unix"))
    },
  },
  {
    id: "abstract-socket",
    attempt: "reach a socket without a file",
    async run({ node, surroundings }) {
      if (surroundings.abstract === undefined) return untested("this system has none")
      await node(connectScript({ path: surroundings.abstract }))
      return held(!surroundings.reached("abstract"))
    },
  },
]

function connectScript(where: { port: number; host: string } | { path: string }): string {
  return `const s = require("net").connect(${JSON.stringify(where)}); s.on("error", () => {}); s.on("connect", () => s.destroy())`
}
