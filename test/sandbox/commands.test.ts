import { existsSync, readFileSync } from "node:fs"
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { afterEach, beforeEach, expect, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { dataPaths } from "../../src/engine/data-directory.ts"
import type { TackleOptions } from "../../src/engine/options.ts"
import type { Tackle } from "../../src/engine/tackle.ts"
import type { PermissionRequest } from "../../src/schema/permission.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { updatePrivateFile } from "../../src/store/private-file.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"
import { readProcessTable } from "../../src/util/process-table.ts"
import { describeSandboxed } from "./here.ts"

let project: TemporaryProject
/** Neither in the project nor among temporary files. */
let outside: string
/** The engine's own. */
let data: string
let engines: Tackle[]
beforeEach(async () => {
  project = await temporaryProject({ a: "a\n", ".env": "KEY=hidden\n", "AGENTS.md": "kept\n" }, { git: true })
  outside = await mkdtemp("/var/tmp/tackle-outside-")
  data = await mkdtemp("/var/tmp/tackle-data-")
  engines = []
})
afterEach(async () => {
  await Promise.all(engines.map((engine) => engine.close()))
  await project.remove()
  await rm(outside, { recursive: true, force: true })
  await rm(data, { recursive: true, force: true })
})

/** Everything that is not denied runs without a question, so that what keeps a command from something is the sandbox. */
const everything = { "*": "allow" } as const

async function open(options: Partial<TackleOptions> = {}): Promise<Tackle> {
  const engine = await createTackle({
    directory: project.directory,
    dataDirectory: data,
    store: createMemoryStore(),
    permission: everything,
    ...options,
  })
  engines.push(engine)
  return engine
}

interface Answer {
  status: string
  text: string
  metadata: Record<string, unknown>
}

async function bash(
  engine: Tackle,
  command: string,
  more: { agent?: string; signal?: AbortSignal; input?: Record<string, unknown> } = {},
): Promise<Answer> {
  const { input = {}, ...rest } = more
  const { state } = await engine.callTool({
    tool: "bash",
    input: JSON.stringify({ command, ...input }),
    ...rest,
  })
  const text = state.status === "completed" ? state.output : state.error
  return { status: state.status, text, metadata: state.metadata ?? {} }
}

function asked(engine: Tackle, reply: "once" | "reject" | "always"): PermissionRequest[] {
  const requests: PermissionRequest[] = []
  engine.on("permission.asked", (request) => {
    requests.push(request)
    void request.reply(reply)
  })
  return requests
}

await describeSandboxed("a command of the model", () => {
  test("never sees the keys of the engine, also not those that are renewed or come while it runs", async () => {
    const { auth, mcpTokens, outputs } = dataPaths(data)
    updatePrivateFile(auth, "test", () => "first-key")
    await mkdir(outputs)
    await writeFile(join(outputs, "full"), "an output\n")
    const engine = await open()
    // A change to the data directory is asked about; here it is what holds after a yes.
    asked(engine, "once")
    const look = `cat ${data}/* 2>&1; ls -A ${data}`
    const running = bash(
      engine,
      `${look}; : > ready; until [ -e go ]; do sleep 0.02; done; ${look}; cat ${outputs}/full; echo x > ${outputs}/mine; echo x > ${data}/mine`,
    )
    while (!existsSync(project.path("ready"))) await delay(10)
    updatePrivateFile(auth, "test", () => "second-key")
    updatePrivateFile(mcpTokens, "test", () => "third-key")
    await writeFile(`${auth}.0123456789ab`, "fourth-key")
    await project.write("go", "")
    const { text } = await running
    expect(text).toContain("an output")
    expect(text).not.toMatch(/-key|auth|tackle\.db/)
    expect(existsSync(join(outputs, "mine")) || existsSync(join(data, "mine"))).toBe(false)
  })

  test("works in a project that lies in the data directory", async () => {
    const directory = join(data, "project")
    await mkdir(directory)
    await writeFile(join(directory, "a"), "kept\n")
    const { text } = await bash(await open({ directory }), `cat a; echo made > b; cat b; ls ${data}`)
    expect(text).toContain("kept\nmade\nproject\n")
  })

  test("writes in the project, and not outside, however it gets there", async () => {
    const engine = await open()
    const { text, metadata } = await bash(
      engine,
      `sh -c 'echo x > ${outside}/one'; python3 -c 'open("${outside}/two", "w")'; ln -s ${outside} link; echo x > link/three; echo in > b`,
    )
    expect(await readdir(outside)).toEqual([])
    expect(await project.read("b")).toBe("in\n")
    expect(text).toContain("Read-only file system")
    expect(metadata.sandboxed).toBe(true)
  })

  test("changes no protected file, and makes none of git's or Tackle's", async () => {
    await rm(project.path(".git/hooks"), { recursive: true, force: true })
    const config = await project.read(".git/config")
    const engine = await open()
    // Rules ask about protected files; here it is what holds after a yes.
    asked(engine, "once")
    const attempts = [
      "echo x >> AGENTS.md",
      "rm -f AGENTS.md",
      "mv AGENTS.md away",
      "mkdir -p .git/hooks && echo x > .git/hooks/post-commit",
      "mkdir other && mv -T other .git",
      "mv .git away",
      "git config core.fsmonitor ./x",
      "mkdir .tackle && echo '{}' > .tackle/config.json",
      "ln -s /etc .tackle",
      `sh -c 'echo x > "$0"' .git/config`,
    ]
    for (const attempt of attempts) {
      const { text } = await bash(engine, `${attempt}; echo "code $?"`)
      expect(text, attempt).toMatch(/code [1-9]/)
    }
    expect(await project.read("AGENTS.md")).toBe("kept\n")
    expect(await project.read(".git/config")).toBe(config)
    expect(existsSync(project.path(".git/hooks/post-commit"))).toBe(false)
    expect(existsSync(project.path(".tackle"))).toBe(false)
  })

  test("runs where a protected file or a secret is an absolute link, and does not change what that leads to", async () => {
    await writeFile(join(outside, "other"), "kept\n")
    await symlink(join(project.directory, "AGENTS.md"), join(project.directory, "CLAUDE.md"))
    await symlink(join(outside, "other"), join(project.directory, ".envrc"))
    const engine = await open()
    asked(engine, "once")
    const { text } = await bash(engine, "echo x >> CLAUDE.md; cat .envrc; echo ran")
    expect(text).toMatch(/^ran$/m)
    expect(text).not.toContain("kept")
    expect(await readFile(join(project.directory, "AGENTS.md"), "utf8")).toBe("kept\n")
  })

  test("reads no secret that no rule names, whatever program it takes", async () => {
    // The name is put together, or the rules would ask for it before the sandbox has to hold.
    const read = `${process.execPath} -e 'console.log(require("fs").readFileSync(".e" + "nv", "utf8"))'`
    expect((await bash(await open(), read)).text).not.toContain("hidden")
    const named = await open({ permission: { "*": "allow", read: { "*": "allow", ".env": "allow" } } })
    expect((await bash(named, read)).text).toContain("KEY=hidden")
    const denied = await open({ permission: { "*": "allow", read: { "*": "allow", a: "deny" } } })
    const other = `${process.execPath} -e 'console.log(require("fs").readFileSync("a", "utf8"))'`
    expect((await bash(denied, other)).text).toContain("EACCES")
  })

  test("commits: git by itself gets its repository, its hooks do not change", async () => {
    const engine = await open()
    const { text } = await bash(engine, "git add a && git -c x=y status >/dev/null; echo")
    expect(text).toContain("Read-only file system")
    const identity = {
      GIT_AUTHOR_NAME: "T",
      GIT_AUTHOR_EMAIL: "t@x",
      GIT_COMMITTER_NAME: "T",
      GIT_COMMITTER_EMAIL: "t@x",
    }
    const own = await open({ environment: { ...process.env, ...identity } })
    await project.write("a", "b\n")
    expect(await bash(own, "git add -A && git commit -qm second && git log --format=%s")).toMatchObject({
      text: expect.stringContaining("second\nStart"),
    })
  })

  test("that fails at the sandbox says so, and how to ask for more", async () => {
    const engine = await open()
    const failed = await bash(engine, `touch ${outside}/x`)
    expect(failed.text).toMatch(/sandbox may be the cause.*writable.*outside: true/)
    expect(
      (await bash(engine, "getent hosts localhost.invalid; echo 'Could not resolve host' >&2; exit 6")).text,
    ).toMatch(/no network access/)
    expect((await bash(engine, "exit 1")).text).not.toContain("sandbox")
    expect((await bash(engine, "echo Read-only file system")).text).not.toContain("the sandbox may be")
  })

  test("leaves a job in its bounds that goes on, and ends with the engine", async () => {
    const engine = await open()
    const { metadata } = await bash(
      engine,
      "(sleep 0.2; touch /var/tmp/tackle-job; echo done > late; exec sleep 300.7) & echo started",
    )
    expect(metadata.jobID).toMatch(/^job_/)
    await expect.poll(() => existsSync(project.path("late"))).toBe(true)
    expect(existsSync("/var/tmp/tackle-job")).toBe(false)
    expect(runs("300.7")).toBe(true)
    await engine.close()
    expect(runs("300.7")).toBe(false)
  })

  test("ends with everything in the sandbox when it is aborted, also what made itself independent", async () => {
    const engine = await open()
    const controller = new AbortController()
    const answer = bash(
      engine,
      "setsid -f env -i sh -c 'trap \"\" TERM; sleep 300.8'; touch ready; sleep 300.9",
      {
        signal: controller.signal,
      },
    )
    await expect.poll(() => existsSync(project.path("ready"))).toBe(true)
    controller.abort()
    expect((await answer).status).toBe("error")
    await expect.poll(() => runs("300.8") || runs("300.9")).toBe(false)
  })

  test("with a rule for hosts open reaches no others", async () => {
    const engine = await open({ permission: { ...everything, network: "deny" } })
    expect((await bash(engine, "cat /proc/net/dev | wc -l")).text).toMatch(/^3\n/)
    const wide = await open({ permission: { ...everything, network: "allow" } })
    const lines = (await readFile("/proc/net/dev", "utf8")).trim().split("\n").length
    expect((await bash(wide, "cat /proc/net/dev | wc -l")).text).toMatch(new RegExp(`^${lines}\\n`))
  })
})

await describeSandboxed("outside of the sandbox", () => {
  const further = { outside: true }

  test("the person is asked, once, also where a rule allows everything", async () => {
    const engine = await open()
    const requests = asked(engine, "once")
    const { metadata } = await bash(engine, `touch ${outside}/x`, { input: further })
    expect(requests.map(({ permission, patterns }) => [permission, patterns])).toEqual([
      ["sandbox_escape", [`touch ${outside}/x`]],
    ])
    expect(await readdir(outside)).toEqual(["x"])
    expect(metadata.sandboxed).toBe(false)
  })

  test("one question stands for both where the command would ask too, and a refusal keeps it from running", async () => {
    const engine = await open({ permission: { external_directory: "allow" } })
    const requests = asked(engine, "reject")
    expect(await bash(engine, `touch ${outside}/x`, { input: further })).toMatchObject({ status: "error" })
    expect(requests.map(({ permission }) => permission)).toEqual(["sandbox_escape"])
    expect(await readdir(outside)).toEqual([])
  })

  test("a rule that names the permission spares the question, command by command; denies hold", async () => {
    const permission = {
      ...everything,
      bash: { "*": "allow", "rm *": "deny" },
      sandbox_escape: { "touch *": "allow" },
    } as const
    const engine = await open({ permission })
    const requests = asked(engine, "reject")
    expect((await bash(engine, `touch ${outside}/x`, { input: further })).status).toBe("completed")
    expect(requests).toEqual([])
    expect((await bash(engine, `touch ${outside}/y; cp a ${outside}/z`, { input: further })).status).toBe(
      "error",
    )
    expect(requests.map(({ patterns }) => patterns)).toEqual([[`cp a ${outside}/z`]])
    expect((await bash(engine, `rm ${outside}/x`, { input: further })).text).toContain("denied by a rule")
    expect(await readdir(outside)).toEqual(["x"])
  })

  test("plan cannot get there, and changes nothing of the project", async () => {
    const engine = await open()
    asked(engine, "once")
    const write = (file: string) => `${process.execPath} -e 'require("fs").writeFileSync("${file}", "")'`
    expect((await bash(engine, write("b"), { agent: "plan" })).text).toContain("EROFS")
    expect((await bash(engine, "touch b", { agent: "plan" })).text).toContain("denied by a rule")
    expect(existsSync(project.path("b"))).toBe(false)
    expect(await bash(engine, "ls", { agent: "plan" })).toMatchObject({
      text: expect.stringContaining("AGENTS.md"),
    })
    expect((await bash(engine, "touch b", { agent: "plan", input: further })).text).toContain(
      "sandbox_escape",
    )
    expect(existsSync(project.path("b"))).toBe(false)
  })
})

/** A search path on which there is no bubblewrap. */
async function withoutBubblewrap(): Promise<Record<string, string | undefined>> {
  await mkdir(join(outside, "bin"))
  return { ...process.env, PATH: join(outside, "bin") }
}

test("where none works: auto runs commands as they are, require refuses with the remedy, plan has none", async () => {
  const environment = await withoutBubblewrap()
  const auto = await open({ environment })
  expect(await bash(auto, `echo x > ${outside}/one`)).toMatchObject({
    status: "completed",
    metadata: { sandboxed: false },
  })
  expect((await auto.tools({ agent: "plan" })).find(({ id }) => id === "bash")).toMatchObject({
    offered: false,
  })

  const required = await open({ environment, sandbox: "require" })
  for (const input of [{}, { outside: true }]) {
    const { status, text } = await bash(required, `echo x > ${outside}/two`, { input })
    expect([status, text]).toEqual([
      "error",
      expect.stringMatching(/not run.*apt-get install bubblewrap.*tackle doctor/s),
    ])
  }
  expect(await readdir(outside)).toContain("one")
  expect(await readdir(outside)).not.toContain("two")
})

test("switched off, commands run as they are and the model is told nothing of a sandbox", async () => {
  const engine = await open({ sandbox: "off" })
  await bash(engine, `echo x > ${outside}/one`)
  expect(await readdir(outside)).toEqual(["one"])
  const tool = (await engine.tools()).find(({ id }) => id === "bash")
  expect(JSON.stringify(tool)).not.toMatch(/sandbox|outside/)
})

function runs(argument: string): boolean {
  return readProcessTable().some(({ pid, alive }) => alive && argumentsOf(pid).includes(argument))
}

function argumentsOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")
  } catch {
    return []
  }
}
