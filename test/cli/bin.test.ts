import { execFileSync } from "node:child_process"
import { existsSync } from "node:fs"
import { cp, mkdir, mkdtemp, rm, symlink } from "node:fs/promises"
import { createServer, request } from "node:http"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { createMachine, endOf, modelConfig, tackleCommand, until } from "./run-tackle.ts"

const oldNode = ["/usr/bin/node", "/usr/local/bin/node"].find(isOld)

function isOld(path: string): boolean {
  if (!existsSync(path)) return false
  const [major = 0, minor = 0] = execFileSync(path, ["-p", "process.versions.node"], { encoding: "utf8" })
    .split(".")
    .map(Number)
  return major < 24 || (major === 24 && minor < 15)
}

test("runs through links, from any directory, and as a script of node", async () => {
  const machine = await createMachine({
    script: ({ body }) => ({ text: String(body.messages.at(-1)?.content) }),
  })
  const links = join(machine.home, "links")
  await mkdir(join(links, "deeper"), { recursive: true })
  await symlink(tackleCommand, join(links, "deeper/tackle"))
  await symlink("deeper/tackle", join(links, "tk"))
  const linked = await machine.run(["run", "linked"], { command: [join(links, "tk")], cwd: machine.home })
  expect(linked).toMatchObject({ code: 0, stdout: "linked\n" })
  const script = await machine.run(["run", "with 'quotes' and\nlines"], {
    command: [process.execPath, tackleCommand],
  })
  expect(script).toMatchObject({ code: 0, stdout: "with 'quotes' and\nlines\n" })
})

test("runs through a relative link in a linked directory, as where /bin is a link to /usr/bin", async () => {
  const machine = await createMachine()
  const path = (...names: string[]) => join(machine.home, ...names)
  await mkdir(path("usr/bin"), { recursive: true })
  await mkdir(path("share"))
  await symlink(dirname(dirname(tackleCommand)), path("share/tackle"))
  await symlink("../../share/tackle/bin/tackle", path("usr/bin/tackle"))
  await symlink("usr/bin", path("bin"))
  const version = await machine.run(["--version"], { command: [path("bin/tackle")] })
  expect(version).toMatchObject({ code: 0, stderr: "" })
})

test.skipIf(!oldNode)(
  "hands over from an old node to the one beside the command, with signals and exit code",
  async () => {
    const machine = await createMachine({ script: [{ text: "Said." }, { fault: "hang" }] })
    const command: [string, ...string[]] = [String(oldNode), tackleCommand]
    expect(await machine.run(["run", "hi"], { command })).toMatchObject({ code: 0, stdout: "Said.\n" })
    expect(await machine.run(["rum"], { command })).toMatchObject({ code: 2 })
    const hanging = machine.start(["run", "--format", "json", "hang"], { command })
    await until("the request", () => machine.server.requests.length === 2)
    hanging.child.kill("SIGTERM")
    expect(endOf(await hanging.ended)).toMatchObject({ status: "interrupted", exitCode: 130 })
  },
)

test("reports a missing build, or a missing or old node, in one line", async () => {
  const machine = await createMachine()
  const bare = await mkdtemp(join(tmpdir(), "tackle-bare-"))
  onTestFinished(() => rm(bare, { recursive: true, force: true }))
  await mkdir(join(bare, "bin"))
  await cp(tackleCommand, join(bare, "bin/tackle"))
  const command: [string] = [join(bare, "bin/tackle")]
  const unbuilt = await machine.run(["--version"], {
    command,
    env: { PATH: `${dirname(process.execPath)}:/usr/bin:/bin` },
  })
  expect(unbuilt).toMatchObject({
    code: 2,
    stdout: "",
    stderr: `tackle: Tackle is not built yet. Run \`npm ci\` in ${bare} first.\n`,
  })
  const tools = join(bare, "tools")
  await mkdir(tools)
  for (const name of ["sh", "dirname", "readlink"]) await symlink(join("/usr/bin", name), join(tools, name))
  const nodeless = await machine.run(["--version"], { command, env: { PATH: tools } })
  expect(nodeless).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining("no node was found on PATH"),
  })
  if (!oldNode) return
  await symlink(oldNode, join(tools, "node"))
  const tooOld = await machine.run(["--version"], { command, env: { PATH: tools } })
  expect(tooOld).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringMatching(/^tackle: Node\.js 24\.15 or newer is required\. This is v\d/),
  })
})

test("sends requests through the proxy of the environment, except those to this machine", async () => {
  const machine = await createMachine({ script: ({ headers }) => ({ text: `Host ${headers.host}.` }) })
  const { port } = machine.server
  const seen: string[] = []
  const proxy = createServer((incoming, response) => {
    seen.push(String(incoming.url))
    const { pathname } = new URL(String(incoming.url))
    const onward = request({ port, path: pathname, method: "POST", headers: incoming.headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    incoming.pipe(onward)
  })
  proxy.on("connect", (incoming, socket) => {
    seen.push(String(incoming.url))
    const onward = connect(port, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n")
      onward.pipe(socket).pipe(onward)
    })
    onward.on("error", () => socket.destroy())
    socket.on("error", () => onward.destroy())
  })
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  const address = proxy.address()
  const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`
  const remote = { TACKLE_CONFIG_CONTENT: JSON.stringify(modelConfig("http://model.test/v1")) }

  const through = await machine.run(["run", "hi"], { env: { HTTP_PROXY: url, ...remote } })
  expect(through).toMatchObject({ code: 0, stdout: "Host model.test.\n" })
  expect(seen).toHaveLength(1)
  expect(seen[0]).toContain("model.test")
  const direct = await machine.run(["run", "hi"], { env: { http_proxy: url, https_proxy: url } })
  expect(direct).toMatchObject({ code: 0, stdout: `Host 127.0.0.1:${port}.\n` })
  expect(seen).toHaveLength(1)
  const wrong = await machine.run(["run", "hi"], { env: { HTTP_PROXY: "not a url" } })
  expect(wrong).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^tackle: Cannot use the proxy from the environment/),
  })
})
