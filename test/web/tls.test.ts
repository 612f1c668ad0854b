import { spawnSync } from "node:child_process"
import { request } from "node:http"
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { temporaryProject } from "../../src/testing/project.ts"
import {
  closeBrowserAfterwards,
  hasNoBrowser,
  loginAddress,
  openWindow,
  startPageServer,
  startSession,
} from "./open-page.ts"

closeBrowserAfterwards()

const hasNoOpenssl = spawnSync("openssl", ["version"]).status !== 0

/** Starts a proxy that adds TLS to a server, with a self-signed certificate. */
async function startTlsProxy() {
  const { directory, read, remove } = await temporaryProject({})
  const [key, certificate] = [join(directory, "key.pem"), join(directory, "certificate.pem")]
  const files = ["-keyout", key, "-out", certificate]
  const subject = ["-subj", "/CN=localhost", "-days", "1", "-nodes"]
  spawnSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", ...files, ...subject])
  let target = ""
  const proxy = createServer(
    { key: await read("key.pem"), cert: await read("certificate.pem") },
    (incoming, outgoing) => {
      const { method, headers, url = "/" } = incoming
      const passed = request(new URL(url, target), { method, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(outgoing)
      })
      passed.on("error", () => outgoing.destroy())
      outgoing.on("close", () => passed.destroy())
      incoming.pipe(passed)
    },
  )
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve))
  onTestFinished(async () => {
    proxy.closeAllConnections()
    proxy.close()
    await remove()
  })
  return {
    origin: `https://localhost:${(proxy.address() as AddressInfo).port}`,
    passTo(url: string) {
      target = url
    },
  }
}

test.skipIf(hasNoBrowser || hasNoOpenssl)(
  "works behind a proxy with TLS, with a cookie that the browser sends only over TLS",
  async () => {
    const proxy = await startTlsProxy()
    const { server } = await startPageServer([{ text: "Over TLS." }], { origins: [proxy.origin] })
    proxy.passTo(server.url)
    const { page, context, problems } = await openWindow({ ignoreHTTPSErrors: true })
    const { hash } = new URL(await loginAddress(server.url))
    await page.goto(`${proxy.origin}/${hash}`)
    await page.getByText("What should the agent do?").waitFor()
    await startSession(page, "Hello")
    await page.getByText("Over TLS.").waitFor()
    expect(await context.cookies()).toMatchObject([{ secure: true, httpOnly: true, sameSite: "Strict" }])
    expect(problems).toEqual([])
  },
)
