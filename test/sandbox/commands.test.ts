import { execFileSync } from "node:child_process"
import { existsSync, globSync, readFileSync } from "node:fs"
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises"
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
import { describeSandboxed } from "./support.ts"

let project: TemporaryProject
/** A directory outside the project and the temporary directories. */
let outside: string
/** The data directory of the engine. */
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

/** Allows everything that is not denied, so that only the sandbox can stop a command. */
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

await describeSandboxed("a bash command of the model", () => {
  test("never sees the keys of the engine, even if they are renewed or added while it runs", async () => {
    const { auth, mcpTokens, outputs } = dataPaths(data)
    updatePrivateFile(auth, "test", () => "first-key")
    await mkdir(outputs)
    await writeFile(join(outputs, "full"), "an output\n")
    const engine = await open()
    // Changing the data directory asks. This tests the sandbox after a yes.
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

  test("works in a project inside the data directory", async () => {
    const directory = join(data, "project")
    await mkdir(directory)
    await writeFile(join(directory, "a"), "kept\n")
    const { text } = await bash(await open({ directory }), `cat a; echo made > b; cat b; ls ${data}`)
    expect(text).toContain("kept\nmade\nproject\n")
  })

  test("writes inside the project but not outside", async () => {
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

  test("cannot change protected files or create .git or .tackle", async () => {
    await rm(project.path(".git/hooks"), { recursive: true, force: true })
    const config = await project.read(".git/config")
    const engine = await open()
    // Protected files ask. This tests the sandbox after a yes.
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

  test("runs if a protected file is an absolute link, and cannot change its target", async () => {
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

  test("cannot read a secret that no rule names, with any program", async () => {
    // The name is assembled at run time, so that the rules do not ask before the sandbox is reached.
    const read = `${process.execPath} -e 'console.log(require("fs").readFileSync(".e" + "nv", "utf8"))'`
    expect((await bash(await open(), read)).text).not.toContain("hidden")
    const named = await open({ permission: { "*": "allow", read: { "*": "allow", ".env": "allow" } } })
    expect((await bash(named, read)).text).toContain("KEY=hidden")
    const denied = await open({ permission: { "*": "allow", read: { "*": "allow", a: "deny" } } })
    const other = `${process.execPath} -e 'console.log(require("fs").readFileSync(String.fromCharCode(97), "utf8"))'`
    expect((await bash(denied, other)).text).toContain("EACCES")
  })

  test("cannot create, move or remove anything in a directory that a rule denies", async () => {
    await project.write("src/generated/old.ts", "kept\n")
    await project.write("src/generated/keep/x.ts", "x\n")
    await project.write("src/a.ts", "a\n")
    const edit = {
      "*": "allow",
      "src/generated/**": "deny",
      "src/generated/keep/**": "allow",
      "gone/*": "deny",
    } as const
    const engine = await open({ permission: { "*": "allow", edit } })
    // The arguments of a script say nothing about its files, so only the sandbox can stop it.
    const attempts = [
      "cp a src/generated/new.ts",
      "mv src/generated g2",
      "mv src s2",
      "rm -rf src/generated",
      "rm src/generated/old.ts",
      "mkdir src/generated/sub",
      "ln -s ../../a src/generated/link",
      "echo x >> src/generated/old.ts",
      "mkdir -p gone && cp a gone/new.ts",
      "mkdir other && mv -T other gone",
    ]
    for (const [index, attempt] of attempts.entries()) {
      await project.write(`script-${index}.sh`, `${attempt}\n`)
      const { text } = await bash(engine, `sh script-${index}.sh; echo "code $?"`)
      expect(text, attempt).toMatch(/code [1-9]/)
    }
    expect((await readdir(project.path("src/generated"))).sort()).toEqual(["keep", "old.ts"])
    expect(await project.read("src/generated/old.ts")).toBe("kept\n")
    expect(existsSync(project.path("gone"))).toBe(false)
    await project.write(
      "allowed.sh",
      "echo y > src/generated/keep/y.ts && mv src/a.ts src/b.ts && cp a src/c.ts\n",
    )
    expect((await bash(engine, 'sh allowed.sh; echo "code $?"')).text).toContain("code 0")
  })

  test("cannot create a path that a rule denies, whatever program creates it", async () => {
    const denied = {
      "foo.txt": "deny",
      "*.secret": "deny",
      "keys/**": "deny",
      "new/deep/file.ts": "deny",
      "target.txt": "deny",
    } as const
    // Each attempt runs in a script, whose text Tackle does not read, and builds its names at run time.
    const attempts: [attempt: string, creates: string][] = [
      ["x=foo; echo x > $x.txt", "foo.txt"],
      ["x=foo; cp a $x.txt", "foo.txt"],
      ["x=foo; echo b > b; mv b $x.txt", "foo.txt"],
      ["x=foo; ln -s a $x.txt", "foo.txt"],
      ["x=foo; ln a $x.txt", "foo.txt"],
      ["x=foo; mkdir $x.txt && echo x > $x.txt/y", "foo.txt/y"],
      ["x=foo; mkdir other; echo x > other/y; mv -T other $x.txt", "foo.txt/y"],
      ["git archive HEAD | tar x", "tracked.secret"],
      ["git archive HEAD | tar x", "gone/tracked.secret"],
      ["x=link; echo x > $x", "target.txt"],
      ["x=keys; mkdir -p $x && echo x > $x/a", "keys/a"],
      ["x=new; mkdir -p $x/deep && echo x > $x/deep/file.ts", "new/deep/file.ts"],
      [
        "x=new; mkdir -p $x/deep; mv $x other; mkdir -p $x/deep && echo x > $x/deep/file.ts",
        "new/deep/file.ts",
      ],
      ["x=.secret; echo x > b$x", "b.secret"],
      ["x=.secret; mkdir -p sub/er && echo x > sub/er/b$x", "sub/er/b.secret"],
      ["x=.secret; echo x > b; mv b b$x", "b.secret"],
      ["x=.secret; mkdir b$x && echo x > b$x/y", "b.secret/y"],
    ]
    async function attempt(
      options: Partial<TackleOptions>,
      [text, path]: [string, string],
    ): Promise<boolean> {
      const own = await temporaryProject(
        { a: "a\n", "tracked.secret": "x\n", "gone/tracked.secret": "x\n", "script.sh": `${text}\n` },
        { git: true },
      )
      try {
        await rm(own.path("tracked.secret"))
        await rm(own.path("gone"), { recursive: true })
        await symlink("target.txt", own.path("link"))
        const engine = await open({ directory: own.directory, ...options })
        const { text: output, metadata } = await bash(engine, "sh script.sh; true")
        expect(metadata.sandboxed, output).toBe(true)
        expect(existsSync(own.path("a"))).toBe(true)
        return existsSync(own.path(path))
      } finally {
        await own.remove()
      }
    }
    const rules = { ...everything, edit: { "*": "allow", ...denied } } as const
    for (const each of attempts) {
      expect(await attempt({}, each), `without a rule: ${each[0]}`).toBe(true)
      expect(await attempt({ permission: rules }, each), each[0]).toBe(false)
    }
  }, 120_000)

  test("cannot read a missing file that a rule denies by creating it from the repository", async () => {
    const files = { "foo.txt": "hidden\n", "sub/b.secret": "hidden\n" }
    for (const [name, content] of Object.entries(files)) await project.write(name, content)
    const git = (...argv: string[]) => execFileSync("git", argv, { cwd: project.directory })
    git("add", ".")
    git("-c", "user.name=t", "-c", "user.email=t@x", "commit", "-qm", "second")
    await project.write(
      "script.sh",
      "git archive HEAD | tar x; find . -name .git -prune -o -type f -exec cat {} +\n",
    )
    const read = { "*": "allow", "foo.txt": "deny", "*.secret": "deny", ".env": "allow" } as const
    for (const [permission, isShown] of [
      [everything, true],
      [{ ...everything, read }, false],
    ] as const) {
      for (const path of ["foo.txt", "sub"]) await rm(project.path(path), { recursive: true })
      await project.write(".env", "")
      const { text } = await bash(await open({ permission }), "sh script.sh")
      expect(text.includes("hidden"), text).toBe(isShown)
      for (const [name, content] of Object.entries(files)) await project.write(name, content)
    }
  })

  test("moves a file that a rule denies out of the project, and says so", async () => {
    await project.write("script.sh", "x=.secret; echo mine > b$x; mkdir -p empty$x\n")
    const engine = await open({ permission: { ...everything, edit: { "*": "allow", "*.secret": "deny" } } })
    const { text } = await bash(engine, "sh script.sh")
    const moved = /moved to (\S+), because a rule denies edits: (\S+)\]/.exec(text)
    expect(moved?.[2]).toBe(project.path("b.secret"))
    expect(await readFile(join(moved?.[1] ?? "", "b.secret"), "utf8")).toBe("mine\n")

    await project.write("job.sh", "until [ -e go ]; do sleep 0.02; done; x=.secret; echo mine > c$x\n")
    await bash(engine, "sh job.sh & true")
    await project.write("go", "")
    await expect.poll(() => globSync(join(dataPaths(data).removed, "*/c.secret"))).toHaveLength(1)
    expect(existsSync(project.path("c.secret"))).toBe(false)
  })

  test("cannot rename a directory that contains a denied file", async () => {
    await project.write("keys/private/one", "hidden\n")
    const engine = await open({
      permission: { "*": "allow", read: { "*": "allow", "keys/private/*": "deny" } },
    })
    for (const attempt of ["mv keys k2", "mv keys/private keys/public", "cat keys/private/one"]) {
      await project.write("script.sh", `${attempt}\n`)
      const { text } = await bash(engine, 'sh script.sh; echo "code $?"')
      expect(text, attempt).toMatch(/code [1-9]/)
    }
  })

  test("can commit, but cannot change hooks", async () => {
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

  test.each<[string, () => Promise<unknown>]>([
    ["a hook", () => project.write(".git/hooks/pre-commit", "#!/bin/sh\nsh ./attack.sh\n")],
    [
      "a hook in a configured directory",
      async () => {
        await project.write("hooks/pre-commit", "#!/bin/sh\nsh ./attack.sh\n")
        await chmod(project.path("hooks/pre-commit"), 0o755)
        execFileSync("git", ["config", "core.hooksPath", "hooks"], { cwd: project.directory })
      },
    ],
    [
      "a filter",
      async () => {
        execFileSync("git", ["config", "filter.x.clean", "sh ./attack.sh"], { cwd: project.directory })
        await project.write(".gitattributes", "* filter=x\n")
      },
    ],
  ])("runs %s of git with the bounds of an unknown program", async (_, prepare) => {
    const targets = [
      "commondir",
      "config.worktree",
      "info/attributes",
      "hooks/post-commit",
      "worktrees/w/x",
      "y",
    ]
    await project.write(
      "attack.sh",
      `cat .env > stolen; ${targets.map((name) => `mkdir -p "$(dirname .git/${name})"; echo x > .git/${name};`).join(" ")} cat\n`,
    )
    await prepare()
    await chmod(project.path(".git/hooks/pre-commit"), 0o755).catch(() => {})
    await project.write("a", "b\n")
    const engine = await open()
    const { text } = await bash(engine, "git add -A && git commit -qm second")
    expect(text).not.toContain("hidden")
    for (const name of targets) expect(existsSync(project.path(`.git/${name}`)), name).toBe(false)
    expect(existsSync(project.path("stolen")) && (await project.read("stolen"))).not.toContain("hidden")
  })

  test("runs without a question if the setting allows it, but asks for what leaves the sandbox", async () => {
    const engine = await open({ permission: {}, sandboxAllow: "auto" })
    const requests = asked(engine, "reject")
    expect(await bash(engine, "echo x > made && sh -c 'cat made'")).toMatchObject({
      text: expect.stringContaining("x"),
    })
    expect(requests).toEqual([])
    await bash(engine, "cat .env")
    await bash(engine, `touch ${outside}/x`)
    await bash(engine, "touch y", { input: { outside: true } })
    expect(requests).toHaveLength(3)
    expect(existsSync(project.path("y"))).toBe(false)

    const problems: string[] = []
    const onProblem = (message: string) => void problems.push(message)
    const off = await open({ permission: {}, sandbox: "off", sandboxAllow: "auto", onProblem })
    const others = asked(off, "reject")
    await bash(off, "echo x > y")
    await bash(off, "echo x > z")
    expect(others.length).toBeGreaterThanOrEqual(2)
    expect(problems).toEqual([expect.stringContaining("no sandbox works")])
  })

  test("reports a failure caused by the sandbox and how to continue", async () => {
    const engine = await open()
    const failed = await bash(engine, `touch ${outside}/x`)
    expect(failed.text).toMatch(/sandbox may be the cause.*writable.*outside: true/)
    expect(
      (await bash(engine, "getent hosts localhost.invalid; echo 'Could not resolve host' >&2; exit 6")).text,
    ).toMatch(/no network access/)
    expect((await bash(engine, "exit 1")).text).not.toContain("sandbox")
    expect((await bash(engine, "echo Read-only file system")).text).not.toContain("the sandbox may be")
  })

  test("leaves a job that stays confined and ends with the engine", async () => {
    const engine = await open()
    const { metadata } = await bash(
      engine,
      "(sleep 0.2; touch /var/tmp/tackle-job; echo done > late; exec sleep 300.7) & echo started",
    )
    expect(metadata.jobID).toMatch(/^job_/)
    await expect.poll(() => existsSync(project.path("late"))).toBe(true)
    expect(existsSync("/var/tmp/tackle-job")).toBe(false)
    await expect.poll(() => runs("300.7")).toBe(true)
    await engine.close()
    expect(runs("300.7")).toBe(false)
  })

  test("ends all its processes when it is aborted, including detached ones", async () => {
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

  test("reaches only the hosts that a rule opens", async () => {
    const engine = await open({ permission: { ...everything, network: "deny" } })
    expect((await bash(engine, "cat /proc/net/dev | wc -l")).text).toMatch(/^3\n/)
    const wide = await open({ permission: { ...everything, network: "allow" } })
    const lines = (await readFile("/proc/net/dev", "utf8")).trim().split("\n").length
    expect((await bash(wide, "cat /proc/net/dev | wc -l")).text).toMatch(new RegExp(`^${lines}\\n`))
  })
})

await describeSandboxed("a command outside the sandbox", () => {
  const further = { outside: true }

  test("asks the user once, even if a rule allows everything", async () => {
    const engine = await open()
    const requests = asked(engine, "once")
    const { metadata } = await bash(engine, `touch ${outside}/x`, { input: further })
    expect(requests.map(({ permission, patterns }) => [permission, patterns])).toEqual([
      ["sandbox_escape", [`touch ${outside}/x`]],
    ])
    expect(await readdir(outside)).toEqual(["x"])
    expect(metadata.sandboxed).toBe(false)
  })

  test("asks one question for the command and the escape, and does not run if refused", async () => {
    const engine = await open({ permission: { external_directory: "allow" } })
    const requests = asked(engine, "reject")
    expect(await bash(engine, `touch ${outside}/x`, { input: further })).toMatchObject({ status: "error" })
    expect(requests.map(({ permission }) => permission)).toEqual(["sandbox_escape"])
    expect(await readdir(outside)).toEqual([])
  })

  test("does not ask if a rule names the permission, and still applies denies", async () => {
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

  test("cannot leave the sandbox or change the project as the plan agent", async () => {
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

/** A search path without bubblewrap. */
async function withoutBubblewrap(): Promise<Record<string, string | undefined>> {
  await mkdir(join(outside, "bin"))
  return { ...process.env, PATH: join(outside, "bin") }
}

test("without a working sandbox: auto runs commands, require refuses them, plan has none", async () => {
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

test("switched off: commands run and the model sees no mention of a sandbox", async () => {
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
