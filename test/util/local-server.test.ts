import crypto from "node:crypto"
import { syncBuiltinESMExports } from "node:module"
import { expect, onTestFinished, test } from "vitest"
import { isAuthorized, type LocalServerOptions, startLocalServer } from "../../src/util/local-server.ts"

async function start(options: Partial<LocalServerOptions> = {}) {
  const faults: unknown[] = []
  const started = await startLocalServer({
    name: "The test",
    host: "127.0.0.1",
    port: 0,
    key: undefined,
    answer: async (_, response) => void response.end("here"),
    onProblem: (error) => faults.push(error),
    ...options,
  })
  onTestFinished(() => void started.server.close())
  return { ...started, faults }
}

test("answers under its origin, with brackets around an IPv6 address", async () => {
  for (const host of ["127.0.0.1", "::1"]) {
    const { origin } = await start({ host })
    expect(origin).toMatch(host === "::1" ? /^http:\/\/\[::1\]:\d+$/ : /^http:\/\/127\.0\.0\.1:\d+$/)
    expect(await (await fetch(origin)).text()).toBe("here")
  }
})

test("requires a key on addresses that other machines can reach", async () => {
  await expect(start({ host: "0.0.0.0" })).rejects.toThrow(
    "on 0.0.0.0 without a key, because other machines could connect. Set a key with --key",
  )
  await start({ host: "0.0.0.0", key: "sesame" })
})

test("reports a port that is taken with a solution", async () => {
  const { origin } = await start()
  await expect(start({ port: Number(new URL(origin).port) })).rejects.toThrow(
    /The test cannot listen on 127\.0\.0\.1:\d+: the port is already in use\. Choose another port with --port/,
  )
})

test("closes the connection and reports an answer that fails", async () => {
  const broken = new Error("broken")
  const { origin, faults } = await start({ answer: () => Promise.reject(broken) })
  await expect(fetch(origin)).rejects.toThrow()
  expect(faults).toEqual([broken])
})

test("reports an error of accepting a connection and continues", async () => {
  const { server, origin, faults } = await start()
  const fault = new Error("too many open files")
  server.emit("error", fault)
  expect(faults).toEqual([fault])
  expect((await fetch(origin)).status).toBe(200)
})

test("accepts exactly the key, and compares every attempt in constant time", () => {
  const { timingSafeEqual } = crypto
  const compared: number[][] = []
  crypto.timingSafeEqual = (one, two) => {
    compared.push([one.byteLength, two.byteLength])
    return timingSafeEqual(one, two)
  }
  syncBuiltinESMExports()
  onTestFinished(() => {
    crypto.timingSafeEqual = timingSafeEqual
    syncBuiltinESMExports()
  })
  const wrong = [
    undefined,
    "",
    "sesame",
    "Bearer ",
    "Bearer sesam",
    "Bearer sesame ",
    "Bearer Sesame",
    "Basic sesame",
  ]
  expect(isAuthorized("Bearer sesame", "sesame")).toBe(true)
  for (const sent of wrong) expect(isAuthorized(sent, "sesame"), sent).toBe(false)
  // The lengths are those of digests, so they reveal nothing about the key.
  expect(compared).toEqual([undefined, ...wrong].map(() => [32, 32]))
})
