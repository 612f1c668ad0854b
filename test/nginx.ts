import { spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { onTestFinished } from "vitest"
import { temporaryProject } from "../src/testing/project.ts"
import { findProgram } from "../src/util/find-program.ts"

/** Path of nginx, or undefined if it is not installed. Debian installs it where only root searches. */
export const nginxProgram = findProgram("nginx", {
  searchPath: `${process.env.PATH ?? ""}:/usr/sbin`,
  worktree: import.meta.dirname,
  trusted: false,
})

/** True if the tests with nginx cannot run. */
export const hasNoNginx = nginxProgram === undefined && process.env.TACKLE_TEST_COMPLETE !== "1"

/**
 * Starts nginx as a proxy for a server, with nginx's own defaults for buffering. Returns the origin of the proxy. It
 * ends with the test.
 */
export async function startProxy(upstream: string): Promise<string> {
  if (!nginxProgram) throw new Error("nginx is not installed. Run: apt-get install nginx")
  const port = await freePort()
  const { directory, path, remove } = await temporaryProject({
    "nginx.conf": [
      "daemon off;",
      "master_process off;",
      "pid nginx.pid;",
      "error_log stderr;",
      "events {}",
      "http {",
      "  access_log off;",
      ...["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `  ${name}_temp_path ${name};`),
      `  server { listen 127.0.0.1:${port}; location / { proxy_pass ${upstream}; } }`,
      "}",
    ].join("\n"),
  })
  const proxy = spawn(nginxProgram, ["-p", directory, "-c", path("nginx.conf"), "-e", "stderr"], {
    stdio: ["ignore", "ignore", "pipe"],
  })
  let problem = ""
  proxy.stderr.setEncoding("utf8").on("data", (text: string) => {
    problem += text
  })
  const exited = once(proxy, "exit")
  onTestFinished(async () => {
    proxy.kill()
    await exited
    await remove()
  })
  const origin = `http://127.0.0.1:${port}`
  while (proxy.exitCode === null) if (await answers(origin)) return origin
  throw new Error(`nginx did not start: ${problem}`)
}

/** Returns true if a server answers, whatever the status of its answer is. */
async function answers(origin: string): Promise<boolean> {
  return fetch(`${origin}/health`).then(
    () => true,
    () => new Promise((resolve) => setTimeout(resolve, 20, false)),
  )
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, "close")
  return port
}
