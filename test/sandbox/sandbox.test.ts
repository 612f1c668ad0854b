import { execFileSync } from "node:child_process"
import { chmod, mkdir, readdir, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { afterEach, beforeEach, expect, test } from "vitest"
import type { Bounds, Network } from "../../src/sandbox/bounds.ts"
import { openSandbox, type Sandbox, SandboxError, startConfined } from "../../src/sandbox/sandbox.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"
import { killOrphans } from "../../src/util/process-tree.ts"
import { describeSandboxed, sandboxHere } from "./support.ts"

let project: TemporaryProject
let sandbox: Sandbox
beforeEach(async () => {
  project = await temporaryProject()
  sandbox = sandboxHere(project.directory)
})
afterEach(async () => {
  await sandbox.close()
  await project.remove()
})

async function run(text: string, more: Partial<Bounds> = {}, env: Record<string, string> = {}) {
  const bounds: Bounds = {
    writable: [project.directory],
    readOnly: [],
    hidden: [],
    absent: [],
    network: "closed",
    ...more,
  }
  const confined = await sandbox.wrap(
    { argv: ["/bin/bash", "-c", text], env: { PATH: process.env.PATH, ...env }, cwd: project.directory },
    bounds,
  )
  const pieces: Buffer[] = []
  const child = await startConfined(confined, (bytes) => pieces.push(Buffer.from(bytes)))
  const exit = await child.exited
  await child.closed
  confined.ended()
  return { exit, output: Buffer.concat(pieces).toString() }
}

await describeSandboxed("a command in the sandbox", () => {
  test("keeps its exit code and output, and reports a signal as a shell does", async () => {
    expect(await run("printf 'a\\0b'; printf c >&2; exit 7")).toEqual({
      exit: { code: 7, signal: null },
      output: "a\0bc",
    })
    expect((await run("kill -TERM $$")).exit).toEqual({ code: 143, signal: null })
  })

  test("applies the deeper of nested bounds and the stricter of equal ones", async () => {
    await mkdir(project.path("a/b/c"), { recursive: true })
    await writeFile(project.path("key"), "secret")
    const bounds = {
      readOnly: [project.path("a"), project.path("key")],
      writable: [project.directory, project.path("a/b")],
      hidden: [project.path("a/b/c"), project.path("key")],
    }
    const { output } = await run(
      "touch a/1 2>/dev/null; touch a/b/2; touch a/b/c/3 2>/dev/null; cat key 2>/dev/null; ls a/b/c",
      bounds,
    )
    expect(output).toBe("")
    expect(await readdir(project.path("a"))).toEqual(["b"])
    expect((await readdir(project.path("a/b"))).sort()).toEqual(["2", "c"])
    expect(await readdir(project.path("a/b/c"))).toEqual([])
  })

  test("removes placeholder directories afterwards, also if two commands held them", async () => {
    const absent = [project.path(".git"), project.path("no/parent")]
    const results = await Promise.all([
      run("mkdir .git/hooks", { absent }),
      run("sleep 0.2; echo x > .git/config", { absent }),
    ])
    expect(results.map(({ exit }) => exit.code)).toEqual([1, 1])
    expect(await readdir(project.directory)).toEqual([])
  })

  test("opens no file below /proc and /sys for writing, and only harmless devices", async () => {
    const script = project.path("open.cjs")
    await writeFile(script, openForWriting)
    const own = "/proc/self/comm"
    const opened = async (roots: string[], bounds: Partial<Bounds> = {}) =>
      (await run([process.execPath, script, ...roots].join(" "), bounds)).output.split("\n")
    // Without the sandbox, the script opens these files. As root, these include kernel settings.
    const outside = execFileSync(process.execPath, [script, own, "/proc/sys/kernel"], { encoding: "utf8" })
    expect(outside).toContain(`${own}\n`)
    if (process.getuid?.() === 0) expect(outside).toContain("/proc/sys/kernel/core_pattern\n")

    const devices = /^\/dev\/(null|zero|full|random|urandom|tty|ptmx|pts\/ptmx|)$/
    const network: Network = { key: "some", allows: () => false }
    const named = { writable: [project.directory, "/proc"], readOnly: ["/dev", "/proc/sys"] }
    for (const bounds of [{}, { network }, named]) {
      const found = await opened(["/proc", "/sys", "/dev"], bounds)
      expect(found).toContain("/dev/null")
      expect(found.filter((path) => path !== "" && !devices.test(path))).toEqual([])
      expect((await run("ls -d /proc/[0-9]* | wc -l; echo x > /dev/null", bounds)).output).toMatch(/^\d\n$/)
    }
  })

  test("has no credentials or agent sockets in its environment", async () => {
    const env = {
      GITHUB_TOKEN: "1",
      AWS_SECRET_ACCESS_KEY: "2",
      PGPASSWORD: "secret",
      MYSQL_PWD: "secret",
      SMTP_PASS: "secret",
      SIGNING_KEY: "secret",
      DATABASE_URL: "secret",
      SSH_AUTH_SOCK: "/x",
      MONKEY: "4",
      TOKENS_MAX: "5",
    }
    const { output } = await run("env", {}, env)
    expect(
      output
        .split("\n")
        .filter((line) => /TOKEN|KEY|SOCK|secret/.test(line))
        .sort(),
    ).toEqual(["MONKEY=4", "TOKENS_MAX=5"])
  })

  test("is ended by a later process if its own was killed", async () => {
    const confined = await sandbox.wrap(
      {
        argv: ["/bin/bash", "-c", "setsid -f sleep 300.6; exit 0"],
        env: { PATH: process.env.PATH },
        cwd: project.directory,
      },
      { writable: [], readOnly: [], hidden: [], absent: [], network: "closed" },
    )
    const child = await startConfined(confined, () => {})
    await child.exited
    await expect.poll(() => child.running()).toBe(true)
    if (!child.identity) throw new Error("the system tells no identity")
    expect(await killOrphans(child.identity)).toBe(true)
    await expect.poll(() => child.running()).toBe(false)
    confined.ended()
  })

  test("keeps its bounds in the background, and ends completely when killed", async () => {
    const confined = await sandbox.wrap(
      {
        argv: [
          "/bin/bash",
          "-c",
          "(while :; do echo x >> beat; touch /etc/tackle-probe; sleep 0.02; done) 2>/dev/null & sleep 0.1",
        ],
        env: { PATH: process.env.PATH },
        cwd: project.directory,
      },
      { writable: [project.directory], readOnly: [], hidden: [], absent: [], network: "closed" },
    )
    const child = await startConfined(confined, () => {})
    expect(await child.exited).toEqual({ code: 0, signal: null })
    expect(child.running()).toBe(true)
    const before = (await project.read("beat")).length
    await expect.poll(async () => (await project.read("beat")).length).toBeGreaterThan(before)
    expect(await readdir("/etc")).not.toContain("tackle-probe")
    await child.kill()
    confined.ended()
    expect(child.running()).toBe(false)
  })
})

/** A script that prints each file below its arguments that it can open for writing. It writes to none of them. */
const openForWriting = `
const { constants, openSync, closeSync, readdirSync, lstatSync } = require("node:fs")
function visit(path) {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found?.isDirectory()) return names(path).forEach((name) => visit(path + "/" + name))
  if (!found || found.isSymbolicLink()) return
  try {
    closeSync(openSync(path, constants.O_WRONLY | constants.O_NONBLOCK))
    console.log(path)
  } catch {}
}
function names(path) {
  try { return readdirSync(path) } catch { return [] }
}
process.argv.slice(2).forEach(visit)
`

await describeSandboxed("the network of a command", () => {
  async function withServer(use: (port: number) => Promise<void>): Promise<void> {
    const server = createServer((request, response) => response.end(`served ${request.headers.host}\n`))
    await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve))
    try {
      await use((server.address() as AddressInfo).port)
    } finally {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  }
  const get = (url: string) => `curl -sS --max-time 5 ${url}`

  test("reaches only its own server if the network is closed", async () => {
    await withServer(async (port) => {
      expect((await run(get(`http://127.0.0.1:${port}/`))).exit.code).toBe(7)
      const own = `${process.execPath} -e 'const s = require("http").createServer((q, r) => r.end("own")).listen(0, "127.0.0.1", () => fetch("http://127.0.0.1:" + s.address().port).then((r) => r.text()).then((t) => { console.log(t); process.exit() }))'`
      expect((await run(own)).output).toBe("own\n")
    })
  })

  test("reaches servers of this machine if the network is open", async () => {
    await withServer(async (port) => {
      expect((await run(get(`http://127.0.0.1:${port}/`), { network: "open" })).output).toBe(
        `served 127.0.0.1:${port}\n`,
      )
    })
  })

  test("reaches only open hosts, by plain request and by tunnel", async (context) => {
    if (process.env.CI !== "true" && !(await has("socat"))) return context.skip("socat is not installed")
    const network: Network = { key: "some", allows: (host) => host === "127.0.0.2" }
    await withServer(async (port) => {
      const { output, exit } = await run(
        [
          get(`http://127.0.0.2:${port}/`),
          get(`--proxytunnel http://127.0.0.2:${port}/`),
          get(`http://127.0.0.3:${port}/`),
          get(`--proxytunnel http://127.0.0.3:${port}/ 2>&1`),
          get(`--noproxy '*' http://127.0.0.2:${port}/ 2>&1`),
          "exit 5",
        ].join("; "),
        { network },
      )
      const lines = output.trim().split("\n")
      expect(lines.slice(0, 3)).toEqual([
        `served 127.0.0.2:${port}`,
        `served 127.0.0.2:${port}`,
        'No rule allows the host 127.0.0.3 (permission "network").',
      ])
      expect(lines[3]).toMatch(/403/)
      expect(lines[4]).toMatch(/connect/i)
      expect(exit.code).toBe(5)
    })
  })
})

async function has(program: string): Promise<boolean> {
  return (await run(`command -v ${program}`)).exit.code === 0
}

test("gives the reason and the remedy if no sandbox is available", async () => {
  const common = {
    mode: "auto",
    platform: "linux",
    architecture: "x64",
    worktree: "/w",
    searchPath: "",
  } as const
  const reasons = [
    openSandbox(common),
    openSandbox({ ...common, platform: "win32" }),
    openSandbox({ ...common, architecture: "riscv64" }),
    openSandbox({ ...common, mode: "off" }),
  ].map(async (each) => ({ present: each.present, ...(await each.state()) }))
  expect(await Promise.all(reasons)).toEqual([
    { present: false, works: false, reason: expect.stringContaining("apt-get install bubblewrap") },
    { present: false, works: false, reason: expect.stringContaining("WSL") },
    { present: false, works: false, reason: expect.stringContaining("riscv64") },
    { present: false, works: false, reason: expect.stringContaining('"sandbox": "off"') },
  ])
})

test("reports the output of a bubblewrap that does not work", async () => {
  await project.write("bin/bwrap", "#!/bin/sh\necho no namespaces here >&2\nexit 1\n")
  await chmod(project.path("bin/bwrap"), 0o755)
  const common = {
    mode: "auto",
    platform: "linux",
    architecture: "x64",
    searchPath: project.path("bin"),
  } as const
  const broken = openSandbox({ ...common, worktree: "/w" })
  expect(await broken.state()).toEqual({
    works: false,
    reason: "bubblewrap is installed but does not work: no namespaces here.",
  })
  const wrapped = broken.wrap(
    { argv: ["true"], env: {}, cwd: "/" },
    { writable: [], readOnly: [], hidden: [], absent: [], network: "closed" },
  )
  await expect(wrapped).rejects.toThrow(SandboxError)
  // Ignores a program inside the project.
  expect(openSandbox({ ...common, worktree: project.directory }).present).toBe(false)
})
