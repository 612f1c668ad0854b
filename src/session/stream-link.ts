import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { networkInterfaces } from "node:os"
import { connect, createServer, type TLSSocket } from "node:tls"
import { within } from "../util/abort.ts"

/** The address at which an engine receives texts directly from other engines. */
export interface LinkAddress {
  /** Addresses of the machine, best first. */
  hosts: string[]
  port: number
  /** Secret for the connection, in base64. Engines receive it through the database. */
  key: string
}

/** Receives texts from other engines. */
export interface LinkReceiver {
  address: LinkAddress
  close(): void
}

/** Sends texts to other engines. */
export interface LinkSender {
  /**
   * Sends a text without line breaks. The first text to an address waits for the connection, up to one second for each
   * host. Returns false if the connection cannot be opened or was lost. Texts to one address arrive in order. They may
   * be lost if the connection is lost.
   */
  send(to: LinkAddress, text: string): Promise<boolean>
  close(): void
}

/**
 * TLS settings. Both sides prove that they know the key. Texts are encrypted with forward secrecy. No certificate is
 * necessary.
 */
const encryption = {
  ciphers: "ECDHE-PSK-CHACHA20-POLY1305",
  minVersion: "TLSv1.2",
  maxVersion: "TLSv1.2",
} as const

const connectMs = 1_000

/** Maximum number of characters in one text. */
const maxText = 16_000_000
/** Maximum number of bytes that wait for a slow receiver. If more bytes wait, the connection is closed. */
const maxWaiting = 4_000_000

/** Maximum number of announced addresses of the machine. */
const maxHosts = 8

/**
 * Starts to receive texts on a free port of `host`: an address of this machine, or `0.0.0.0` or `::` for all addresses.
 */
export async function openLinkReceiver(host: string, onText: (text: string) => void): Promise<LinkReceiver> {
  const key = randomBytes(32)
  const sockets = new Set<TLSSocket>()
  const server = createServer({ ...encryption, pskCallback: () => key }, (socket) => {
    sockets.add(socket)
    socket.unref()
    socket.on("error", () => socket.destroy())
    socket.on("close", () => sockets.delete(socket))
    socket.setEncoding("utf8")
    let rest = ""
    socket.on("data", (data: string) => {
      const lines = (rest + data).split("\n")
      rest = lines.pop() ?? ""
      for (const line of lines) onText(line)
      if (rest.length > maxText) socket.destroy()
    })
  })
  // Ignores clients that do not know the key.
  server.on("tlsClientError", () => {})
  server.listen(0, host)
  await once(server, "listening")
  server.on("error", () => {})
  server.unref()
  const bound = server.address()
  const port = typeof bound === "object" && bound ? bound.port : 0
  return {
    address: { hosts: hostsOf(host), port, key: key.toString("base64") },
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

function hostsOf(host: string): string[] {
  if (host !== "0.0.0.0" && host !== "::") return [host]
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  const reachable = all.filter(({ internal, scopeid }) => !internal && !scopeid)
  return ["127.0.0.1", ...reachable.map(({ address }) => address)].slice(0, maxHosts)
}

/**
 * Creates a sender. The sender tries to connect to each receiver once. If the connection fails, `send` always returns
 * false for this receiver.
 */
export function createLinkSender(): LinkSender {
  const links = new Map<string, Promise<TLSSocket | undefined>>()

  async function open({ hosts, port, key }: LinkAddress): Promise<TLSSocket | undefined> {
    for (const host of hosts) {
      const socket = connect({
        ...encryption,
        host,
        port,
        pskCallback: () => ({ psk: Buffer.from(key, "base64"), identity: "tackle" }),
        // The key identifies the receiver.
        checkServerIdentity: () => undefined,
      })
      socket.on("error", () => socket.destroy())
      const opened = once(socket, "secureConnect").then(
        () => true,
        () => false,
      )
      if (await within(opened, connectMs)) return socket.unref()
      socket.destroy()
    }
    return undefined
  }

  return {
    async send(to, text) {
      const link = links.get(to.key) ?? open(to)
      links.set(to.key, link)
      const socket = await link
      if (!socket || socket.destroyed) return false
      if (socket.writableLength > maxWaiting) socket.destroy()
      socket.write(`${text}\n`)
      return true
    },
    close() {
      for (const link of links.values()) void link.then((socket) => socket?.destroy())
    },
  }
}
