import { once } from "node:events"
import { connect } from "node:net"
import { describe, expect, it, onTestFinished } from "vitest"
import { createLinkSender, openLinkReceiver } from "../../src/session/stream-link.ts"

describe("stream link", () => {
  it("delivers texts in order, also those larger than a packet", async () => {
    const { receiver, received } = await open()
    const sender = send()
    const texts = [
      "first",
      "é".repeat(500_000),
      ...Array.from({ length: 100 }, (_, index) => `text ${index}`),
    ]

    const sent = await Promise.all(texts.map((text) => sender.send(receiver.address, text)))

    expect(sent.every(Boolean)).toBe(true)
    await expect.poll(() => received.length, { timeout: 10_000 }).toBe(texts.length)
    expect(received).toEqual(texts)
  })

  it("refuses a sender without the key", async () => {
    const { receiver, received } = await open()
    const key = Buffer.alloc(32).toString("base64")

    expect(await send().send({ ...receiver.address, key }, "text")).toBe(false)
    expect(received).toEqual([])
  })

  it("survives a connection that does not speak TLS", async () => {
    const { receiver, received } = await open()
    const socket = connect(receiver.address.port, "127.0.0.1")
    socket.on("error", () => {})
    socket.write("GET / HTTP/1.1\r\n\r\n")
    await once(socket, "close")

    expect(await send().send(receiver.address, "text")).toBe(true)
    await expect.poll(() => received).toEqual(["text"])
  })

  it("tries the addresses of a receiver in turn", async () => {
    const { receiver, received } = await open("0.0.0.0")
    const { address } = receiver

    expect(address.hosts[0]).toBe("127.0.0.1")
    expect(await send().send({ ...address, hosts: ["256.0.0.1", ...address.hosts] }, "text")).toBe(true)
    await expect.poll(() => received).toEqual(["text"])
  })

  it("returns false when the receiver is closed", async () => {
    const { receiver } = await open()
    const sender = send()
    await sender.send(receiver.address, "text")
    receiver.close()

    await expect.poll(() => sender.send(receiver.address, "later")).toBe(false)
  })
})

async function open(host = "127.0.0.1") {
  const received: string[] = []
  const receiver = await openLinkReceiver(host, (text) => received.push(text))
  onTestFinished(() => receiver.close())
  return { receiver, received }
}

function send() {
  const sender = createLinkSender()
  onTestFinished(() => sender.close())
  return sender
}
