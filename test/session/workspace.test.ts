import { execFile } from "node:child_process"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { rm } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { createWorkspaceOpener } from "../../src/engine/workspaces.ts"
import { untracked } from "../../src/files/temporary-files.ts"
import {
  canOpenWorkspace,
  describeWorkspace,
  openWorkspace,
  shareableRemote,
} from "../../src/session/workspace.ts"
import { createContentDirectory } from "../../src/store/content-directory.ts"
import type { ContentStore } from "../../src/store/content-store.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { migratePostgres, openPostgresStore } from "../../src/store/postgres.ts"
import type { Store } from "../../src/store/store.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"
import { startGitServer } from "../git-server.ts"
import { describePostgres, startPostgres } from "../postgres.ts"
import { aSession } from "../suites/records.ts"
import { run } from "./run.ts"

const environment = { PATH: process.env.PATH, HOME: "/nonexistent" }
const identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always"]

async function git(cwd: string, ...args: string[]): Promise<string> {
  const env = { ...environment, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" }
  const { stdout } = await promisify(execFile)("git", [...identity, ...args], { cwd, env })
  return stdout.trim()
}

let remotes: TemporaryProject
let server: Awaited<ReturnType<typeof startGitServer>>
let count = 0

beforeAll(async () => {
  remotes = await temporaryProject({})
  server = await startGitServer(remotes.directory)
})
afterAll(async () => {
  await server.stop()
  await remotes.remove()
})

/** Creates a repository with these files on the server, and a clone of it. */
async function cloned(
  files: Record<string, string>,
  prepare: (directory: string) => Promise<void> = async () => {},
) {
  const project = await temporaryProject(files, { git: true })
  count += 1
  const name = `r${count}.git`
  await git(remotes.directory, "init", "--quiet", "--bare", "--initial-branch=main", name)
  const url = `${server.url}/${name}`
  await git(project.directory, "remote", "add", "origin", url)
  await prepare(project.directory)
  await git(project.directory, "push", "--quiet", "origin", "main")
  return { project, url }
}

/** The files of a directory with their contents, modes and links, without `.git`. */
function snapshot(root: string): Record<string, string> {
  const found = readdirSync(root, { recursive: true, withFileTypes: true }).filter(
    (entry) => !entry.isDirectory() && !join(entry.parentPath, entry.name).startsWith(join(root, ".git/")),
  )
  return Object.fromEntries(
    found.map((entry) => {
      const path = join(entry.parentPath, entry.name)
      const state = entry.isSymbolicLink()
        ? `-> ${readlinkSync(path)}`
        : `${(statSync(path).mode & 0o777).toString(8)} ${readFileSync(path, "latin1")}`
      return [path.slice(root.length + 1), state]
    }),
  )
}

const call = (name: string, args: Record<string, unknown>) => ({ calls: [{ name, arguments: args }] })

describePostgres("a session of a lost machine", () => {
  test("continues in a worktree with the same files", async () => {
    await using disposer = new AsyncDisposableStack()
    const postgres = await startPostgres()
    disposer.defer(() => postgres.stop())
    await migratePostgres(postgres.url())
    const store = await openPostgresStore(postgres.url())
    disposer.defer(() => store.close())
    const { project, url } = await cloned({
      "src/a.txt": "a\n",
      "src/run.sh": "#!/bin/sh\n",
      "gone.txt": "gone\n",
      "kept.txt": "kept\n",
    })
    disposer.defer(() => project.remove())
    writeFileSync(project.path("draft.txt"), "never touched by the session\n")
    writeFileSync(project.path("kept.txt"), "changed by the user\n")
    const model = await startModelServer({
      script: [
        call("write", { filePath: "src/new/n.txt", content: "n\n" }),
        call("bash", {
          command:
            "echo b >> src/a.txt; chmod +x src/run.sh; rm gone.txt; ln -s src/a.txt link; printf '\\0\\377' > binary",
        }),
        call("bash", { command: "echo c >> src/a.txt; mkdir -p sub; echo ignored > sub/x" }),
        { text: "done" },
        call("write", { filePath: "undone.txt", content: "x" }),
        { text: "done" },
        call("write", { filePath: "more.txt", content: "more\n" }),
        { text: "on the new machine" },
      ],
    })
    disposer.defer(() => model.close())
    const machine = await temporaryProject({})
    disposer.defer(() => machine.remove())
    const open = (directory: string, name: string) =>
      createTackle({
        directory,
        dataDirectory: machine.path(name),
        store,
        model: "test/m",
        providers: { test: { options: { baseURL: model.url, apiKey: "k" }, models: { m: {} } } },
        permission: { bash: "allow", edit: "allow" },
      })
    const first = await open(project.directory, "one")
    const { session } = await run({ tackle: first })
    await run({ tackle: first }, { session })
    await session.undo()
    await first.close()
    const before = snapshot(project.directory)
    expect(session.info().workspace).toMatchObject({
      root: project.directory,
      git: { remote: url, unpushed: 0, uncommitted: ["draft.txt", "kept.txt"] },
    })
    await rm(project.directory, { recursive: true })

    const stored = await store.session(session.id)
    if (!stored) throw new Error("the session is not stored")
    const openWorkspaceOf = await createWorkspaceOpener({
      store,
      dataDirectory: machine.path("two"),
      environment,
      host: "other",
    })
    const opened = await openWorkspaceOf(stored)
    expect(opened.missing).toEqual([
      "draft.txt was not committed when the session was created.",
      "kept.txt was not committed when the session was created.",
    ])
    const { "draft.txt": _, ...expected } = before
    expect(snapshot(opened.directory)).toEqual({ ...expected, "kept.txt": "644 kept\n" })

    // It is opened in place the second time.
    const moved = await store.session(session.id)
    if (!moved) throw new Error("the session is not stored")
    expect(moved).toMatchObject({ directory: opened.directory, workspace: { host: "other" } })
    expect(await openWorkspaceOf(moved)).toEqual({
      directory: opened.directory,
      isRebuilt: false,
      missing: [],
    })

    // The model learns of the move, and earlier turns can be undone here.
    const second = await open(opened.directory, "two")
    const again = await second.sessions.get(session.id)
    if (!again) throw new Error("the session is not stored")
    await run({ tackle: second }, { session: again, text: "continue" })
    const told = JSON.stringify(model.requests.at(-1)?.body)
    expect(told).toContain(`was rebuilt in ${opened.directory}`)
    expect(told).toContain("draft.txt was not committed")
    // The data directory contains the worktree, but the rules of the worktree apply to it.
    expect(snapshot(opened.directory)).toMatchObject({ "more.txt": "644 more\n" })
    await again.undo()
    await again.undo()
    expect(snapshot(opened.directory)).toMatchObject({ "src/a.txt": "644 a\n", "gone.txt": "644 gone\n" })
    await second.sessions.delete(session.id)
    expect(existsSync(opened.directory)).toBe(false)
    await second.close()
  })
})

/** Stores a session of another machine that changed `files` in its worktree `/lost`. */
async function lostSession(
  store: Store,
  contents: ContentStore,
  { remote, commit, files = {} }: { remote: string; commit: string; files?: Record<string, string> },
) {
  const session = aSession("ses_1", {
    directory: "/lost/src",
    worktree: "/lost",
    workspace: { host: "lost", root: "/lost", git: { remote, commit, unpushed: 0, uncommitted: [] } },
  })
  const changes = await Promise.all(
    Object.entries(files).map(async ([path, text]) => {
      const hash = (await contents.put(Buffer.from(text))) ?? ""
      return { path, after: { hash, mode: 0o644 } }
    }),
  )
  const model = { providerID: "test", modelID: "m" }
  const message = { sessionID: "ses_1", role: "user", time: { created: 1 }, agent: "build", model } as const
  await store.commit([
    { kind: "session", session },
    { kind: "message", message: { ...message, id: "msg_1" } },
    {
      kind: "part",
      part: { id: "prt_1", sessionID: "ses_1", messageID: "msg_1", type: "patch", files: changes },
    },
  ])
  return session
}

describe("a workspace from a repository that is not trusted", () => {
  async function start() {
    const store = createMemoryStore()
    const place = await temporaryProject({})
    const contents = { ...createContentDirectory(place.path("contents")), isShared: true }
    const options = {
      store,
      contents,
      directory: place.path("workspace"),
      holder: { id: "eng_1", pid: process.pid },
      trackTemporary: untracked,
      environment: { ...environment, GIT_DIR: "/elsewhere", GIT_CONFIG_PARAMETERS: "'core.hooksPath=x'" },
    }
    return { store, place, contents, options }
  }

  test("runs no hooks, filters, monitors or submodules, even if the user's configuration allows them", async () => {
    const { store, place, contents, options } = await start()
    const ran = place.path("ran")
    await place.write("home/template/hooks/post-checkout", `#!/bin/sh\ntouch ${ran}\n`)
    chmodSync(place.path("home/template/hooks/post-checkout"), 0o755)
    const settings = {
      "core.hooksPath": ".githooks",
      "core.fsmonitor": `touch ${ran}`,
      "filter.evil.smudge": `touch ${ran}; cat`,
      "init.templateDir": place.path("home/template"),
      "protocol.ext.allow": "always",
      "submodule.recurse": "true",
      "fetch.recurseSubmodules": "true",
    }
    mkdirSync(place.path("home"), { recursive: true })
    for (const [key, value] of Object.entries(settings))
      await git(place.directory, "config", "--file", place.path("home/.gitconfig"), key, value)
    const { project, url } = await cloned(
      {
        ".gitattributes": "* filter=evil diff=evil\n",
        "a.txt": "a\n",
        ".gitconfig": `[filter "evil"]\n\tsmudge = touch ${ran}\n`,
        "hooks/post-checkout": `#!/bin/sh\ntouch ${ran}\n`,
        ".githooks/post-checkout": `#!/bin/sh\ntouch ${ran}\n`,
        ".gitmodules": `[submodule "s"]\n\tpath = s\n\turl = ext::sh -c touch% ${ran}\n\tupdate = !touch ${ran}\n`,
      },
      async (directory) => {
        for (const name of ["hooks", ".githooks"]) chmodSync(join(directory, name, "post-checkout"), 0o755)
        const commit = await git(directory, "rev-parse", "HEAD")
        await git(directory, "update-index", "--add", "--cacheinfo", `160000,${commit},s`)
        await git(directory, "commit", "--quiet", "--all", "--message", "submodule")
      },
    )
    const commit = await git(project.directory, "rev-parse", "HEAD")
    const session = await lostSession(store, contents, { remote: url, commit })
    const home = { ...options.environment, HOME: place.path("home") }
    const { directory } = await openWorkspace(session, { ...options, environment: home })
    expect(snapshot(join(directory, ".."))["a.txt"]).toBe("644 a\n")
    expect(existsSync(ran)).toBe(false)
    await Promise.all([project.remove(), place.remove()])
  })

  test.each([
    "ext::sh -c touch% /tmp/never",
    "file:///etc",
    "/etc",
    "-oProxyCommand=touch",
    "ssh://-oProxyCommand=touch/x",
    "ssh://%2doProxyCommand=touch/x",
    "-u@host:path",
    "git@host:-path",
    "https://host/a b",
    "https://host/a\nb",
  ])("refuses the remote %s", async (remote) => {
    const { store, place, contents, options } = await start()
    expect(shareableRemote(remote)).toBeUndefined()
    const session = await lostSession(store, contents, { remote, commit: "a".repeat(40) })
    await expect(openWorkspace(session, options)).rejects.toMatchObject({ code: "workspace" })
    expect(existsSync(place.path("workspace"))).toBe(false)
    await place.remove()
  })

  test("refuses a commit that is an option, and a commit that the remote does not have", async () => {
    const { store, place, contents, options } = await start()
    const { project, url } = await cloned({ "a.txt": "a\n" })
    for (const commit of ["--upload-pack=touch", "b".repeat(40)]) {
      const session = await lostSession(store, contents, { remote: url, commit })
      await expect(openWorkspace(session, options)).rejects.toThrow("cannot be rebuilt")
    }
    // Nothing is left behind, and the session was not moved.
    expect(readdirSync(place.path("workspace/ses_1"))).toEqual([])
    expect((await store.session("ses_1"))?.directory).toBe("/lost/src")
    expect(await store.holder("ses_1")).toBeUndefined()
    await Promise.all([project.remove(), place.remove()])
  })

  test("says whether the directory was deleted here or is on another machine", async () => {
    const { store, place, options } = await start()
    const lost = aSession("ses_1", { directory: "/lost" })
    const workspace = { host: "office", root: "/lost" }
    for (const [host, text] of [
      ["office", /^The directory \/lost of session ses_1 does not exist .*Restore the directory/],
      ["laptop", /^The directory \/lost of session ses_1 is on another machine \(office\)/],
    ] as const) {
      const opened = openWorkspace({ ...lost, workspace }, { ...options, host })
      await expect(opened).rejects.toThrow(text)
    }
    await expect(openWorkspace(lost, options)).rejects.toThrow("does not exist")
    expect(await store.sessions({})).toEqual([])
    await place.remove()
  })

  test("keeps what another process changed before the session was leased, and does not move it twice", async () => {
    const { store, place, contents, options } = await start()
    const { project, url } = await cloned({ "a.txt": "a\n" })
    const commit = await git(project.directory, "rev-parse", "HEAD")
    const read = await lostSession(store, contents, { remote: url, commit })
    await store.commit([{ kind: "session", session: { ...read, title: "changed" } }])
    const { directory } = await openWorkspace(read, { ...options, host: "here" })
    const moved = await store.session("ses_1")
    expect(moved).toMatchObject({ title: "changed", directory, workspace: { host: "here" } })
    await expect(openWorkspace(read, { ...options, host: "other" })).rejects.toThrow("has moved")
    expect(await store.session("ses_1")).toEqual(moved)
    expect(await store.holder("ses_1")).toBeUndefined()
    await Promise.all([project.remove(), place.remove()])
  })

  test("writes no file through a link, in .git or outside the worktree, and lists what is missing", async () => {
    const { store, place, contents, options } = await start()
    const outside = place.path("outside")
    mkdirSync(outside)
    const { project, url } = await cloned({ "a.txt": "a\n" }, async (directory) => {
      symlinkSync(outside, join(directory, "link"))
      await git(directory, "add", "--all")
      await git(directory, "commit", "--quiet", "--message", "link")
    })
    const session = await lostSession(store, contents, {
      remote: url,
      commit: await git(project.directory, "rev-parse", "HEAD"),
      files: {
        "/lost/link/evil": "x",
        "/etc/evil": "x",
        "/lost/../evil": "x",
        "/lost/.git/hooks/pre-commit": "x",
        "/lost/good": "good",
      },
    })
    const { directory, missing } = await openWorkspace(session, options)
    const root = join(directory, "..")
    expect(readdirSync(outside)).toEqual([])
    expect(existsSync(join(root, "../evil"))).toBe(false)
    expect(existsSync(join(root, ".git/hooks/pre-commit"))).toBe(false)
    expect(snapshot(root)).toMatchObject({ good: "644 good" })
    expect(missing.join("\n")).toMatch(/link\/evil could not be restored/)
    expect(missing).toHaveLength(4)
    await Promise.all([project.remove(), place.remove()])
  })
})

test("describes a worktree with commits that were not pushed, without passwords", async () => {
  const { project, url } = await cloned({ "a.txt": "a\n" })
  const pushed = await git(project.directory, "rev-parse", "HEAD")
  await git(project.directory, "remote", "set-url", "origin", url.replace("//", "//me:secret@"))
  await git(project.directory, "commit", "--quiet", "--allow-empty", "--message", "local")
  const found = await describeWorkspace(project.directory, environment)
  expect(found.git).toEqual({ remote: url, commit: pushed, unpushed: 1, uncommitted: [], more: undefined })
  expect(shareableRemote("https://me:secret@example.com/a.git")).toBe("https://example.com/a.git")
  expect(shareableRemote("git@example.com:a/b.git")).toBe("git@example.com:a/b.git")
  await project.remove()
  const plain = await temporaryProject({})
  expect((await describeWorkspace(plain.directory, environment)).git).toBeUndefined()
  await plain.remove()
})

test("lists new, staged and changed files as uncommitted", async () => {
  const { project } = await cloned({ "a.txt": "a\n", "b.txt": "b\n" })
  writeFileSync(project.path("a.txt"), "changed\n")
  writeFileSync(project.path("b.txt"), "staged\n")
  writeFileSync(project.path("c.txt"), "new\n")
  writeFileSync(project.path("d.txt"), "added\n")
  await git(project.directory, "add", "b.txt", "d.txt")
  const found = await describeWorkspace(project.directory, environment)
  expect(found.git?.uncommitted.sort()).toEqual(["a.txt", "b.txt", "c.txt", "d.txt"])
  await project.remove()
})

test("says which worker can open a workspace", () => {
  const offer = { host: "a", directories: ["/srv"], clones: false }
  const session = aSession("ses_1", { directory: "/srv/p" })
  const remote = { commit: "", unpushed: 0, uncommitted: [] }
  const workspace = { host: "b", root: "/srv/p", git: { remote: "https://example.com/a", ...remote } }
  expect(canOpenWorkspace(session, offer)).toBe(true)
  expect(canOpenWorkspace({ ...session, directory: "/other" }, offer)).toBe(false)
  expect(canOpenWorkspace({ ...session, workspace }, offer)).toBe(false)
  expect(canOpenWorkspace({ ...session, workspace }, { ...offer, clones: true })).toBe(true)
  expect(
    canOpenWorkspace({ ...session, workspace: { ...workspace, git: undefined } }, { ...offer, clones: true }),
  ).toBe(false)
})
