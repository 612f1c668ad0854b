import { link, mkdir, symlink, writeFile } from "node:fs/promises"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import {
  commandBounds,
  createTreeScanner,
  networkOf,
  type TreeScanner,
} from "../../src/permission/command-bounds.ts"
import type { Layer } from "../../src/permission/policy.ts"
import { defaultRules, type PermissionConfig, rulesFromObject } from "../../src/permission/rules.ts"
import { knownPrograms } from "../../src/permission/shell/read-only-proof.ts"
import type { Bounds } from "../../src/sandbox/bounds.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"

let project: TemporaryProject
let home: TemporaryProject
let scanner: TreeScanner
beforeEach(async () => {
  project = await temporaryProject({
    "src/a.ts": "",
    ".env": "",
    ".vscode/settings.json": "",
    "sub/.env.local": "",
  })
  home = await temporaryProject({ ".ssh/id": "", ".aws/credentials": "", "notes/n": "" })
  scanner = createTreeScanner()
})
afterEach(async () => {
  await project.remove()
  await home.remove()
})

function bounds(permission: PermissionConfig = {}, more: { layers?: Layer[]; git?: boolean } = {}): Bounds {
  return commandBounds({
    policy: {
      layers: [
        { name: "defaults", rules: defaultRules() },
        { name: "user", rules: rulesFromObject(permission) },
        ...(more.layers ?? []),
      ],
    },
    worktree: project.directory,
    home: home.directory,
    temporary: ["/tmp", "/nonexistent"],
    guarded: [home.path("notes"), home.path("gone")],
    secret: [],
    shown: [],
    configDirectories: [],
    programs: { known: more.git === true, git: more.git === true },
    scanner,
  })
}

test("makes the user's config directories read-only, and absent ones in the worktree uncreatable", async () => {
  await project.write("cfg/tackle/tool/a.ts", "")
  const { readOnly, absent } = commandBounds({
    policy: {
      layers: [{ name: "defaults", rules: [...defaultRules(), ...rulesFromObject({ edit: "allow" })] }],
    },
    worktree: project.directory,
    home: home.directory,
    temporary: [],
    guarded: [],
    configDirectories: [project.path("cfg/tackle"), project.path("cfg/opencode"), home.path("gone")],
    secret: [],
    shown: [],
    programs: { known: false, git: false },
    scanner,
  })
  expect(readOnly).toContain(project.path("cfg/tackle"))
  expect(absent).toContain(project.path("cfg/opencode"))
  expect(absent).not.toContain(home.path("gone"))
})

describe("without rules", () => {
  test("makes the project and temporary files writable, but not protected and engine files", () => {
    const { writable, readOnly, absent, network } = bounds()
    expect(writable).toEqual([project.directory, "/tmp"])
    expect(readOnly.toSorted()).toEqual(
      [
        project.path(".env"),
        project.path(".vscode"),
        project.path("sub/.env.local"),
        home.path("notes"),
      ].sort(),
    )
    expect(absent).toEqual([project.path(".git"), project.path(".tackle")])
    expect(network).toBe("closed")
  })

  test("hides secrets of the project and the home directory", () => {
    expect(bounds().hidden.toSorted()).toEqual(
      [project.path(".env"), project.path("sub/.env.local"), home.path(".ssh"), home.path(".aws")].sort(),
    )
  })

  test("sees files that were created since the last command", async () => {
    bounds()
    await project.write("sub/deep/er/.env", "")
    await project.write("AGENTS.md", "")
    expect(bounds().hidden).toContain(project.path("sub/deep/er/.env"))
    expect(bounds().readOnly).toContain(project.path("AGENTS.md"))
    await mkdir(project.path(".git"))
    expect(bounds().readOnly).toContain(project.path(".git"))
    expect(bounds().absent).toEqual([project.path(".tackle")])
  })

  test("makes the programs of node_modules/.bin read-only", async () => {
    await project.write("node_modules/.bin/x", "")
    await project.write("node_modules/p/.env", "")
    expect(bounds().readOnly).toContain(project.path("node_modules/.bin"))
  })

  test("uses the real path of a linked worktree", async () => {
    await symlink(project.directory, home.path("link"))
    const { writable } = commandBounds({
      policy: { layers: [{ name: "defaults", rules: defaultRules() }] },
      worktree: home.path("link"),
      home: home.directory,
      temporary: [],
      guarded: [],
      secret: [],
      shown: [],
      configDirectories: [],
      programs: { known: false, git: false },
      scanner,
    })
    expect(writable).toEqual([project.directory])
  })
})

describe("rules", () => {
  test("opens a protected file or a secret only if a rule names it", () => {
    const named = bounds({
      edit: { ".vscode/*": "allow", ".env": "allow" },
      read: { ".env": "allow", "~/.ssh/*": "allow" },
    })
    expect(named.readOnly).not.toContain(project.path(".env"))
    expect(named.hidden).not.toContain(project.path(".env"))
    expect(named.hidden).not.toContain(home.path(".ssh"))
    const covered = bounds({ edit: "allow", read: "allow" })
    expect(covered.readOnly).toContain(project.path(".vscode"))
    expect(covered.hidden).toEqual(expect.arrayContaining([project.path(".env"), home.path(".ssh")]))
  })

  test("makes paths denied for edit read-only and hides paths denied for read", () => {
    const { readOnly, hidden } = bounds({
      edit: { "src/*": "deny" },
      read: { "sub/**": "deny", "~/notes/**": "deny" },
    })
    expect(readOnly).toContain(project.path("src"))
    expect(hidden).toEqual(expect.arrayContaining([project.path("sub/.env.local"), home.path("notes")]))
  })

  test("makes a denied directory read-only as a whole, except what a later rule allows", async () => {
    await project.write("src/sub/b.ts", "")
    const { readOnly, writable } = bounds({
      edit: { "src/**": "deny", "src/sub/*": "allow", "src/c.ts": "allow" },
    })
    expect(readOnly).toContain(project.path("src"))
    expect(writable).toContain(project.path("src/sub"))
    expect(readOnly).not.toContain(project.path("src/sub/b.ts"))
    const byName = bounds({ edit: { src: "deny" } })
    expect(byName.readOnly).toContain(project.path("src"))
    expect(byName.writable).not.toContain(project.path("src/sub"))
    expect(bounds({ edit: { "src/*.ts": "deny" } }).readOnly).not.toContain(project.path("src"))
  })

  test("does not let a denied directory be created if its parent exists", () => {
    expect(bounds({ edit: { "src/generated/**": "deny" } }).absent).toContain(project.path("src/generated"))
    expect(bounds({ edit: { "src/generated/**": "ask" } }).absent).not.toContain(
      project.path("src/generated"),
    )
    expect(bounds({ edit: { "dist/*.js": "deny" } }).absent).not.toContain(project.path("dist"))
  })

  test("finds a denied directory behind a thousand others", async () => {
    for (let index = 0; index < 1_010; index++)
      await mkdir(project.path(`many/${index}`), { recursive: true })
    await project.write("z/y/x/deep/a", "")
    const { readOnly, hidden } = bounds({
      edit: { "z/y/x/deep/**": "deny" },
      read: { "z/y/x/deep/*": "deny" },
    })
    expect(readOnly).toContain(project.path("z/y/x/deep"))
    expect(hidden).toContain(project.path("z/y/x/deep/a"))
  })

  test("covers other names of a hidden or read-only file", async () => {
    await link(project.path(".env"), project.path("src/copy"))
    await link(project.path("src/a.ts"), project.path("sub/b.ts"))
    const { readOnly, hidden } = bounds({ edit: { "src/*.ts": "deny" } })
    expect(hidden).toContain(project.path("src/copy"))
    expect(readOnly).toEqual(expect.arrayContaining([project.path("src/copy"), project.path("sub/b.ts")]))
  })

  test("makes an outside directory read-only if a rule denies it", async () => {
    await mkdir(home.path("other"))
    expect(bounds({ edit: { "~/other/**": "deny" } }).readOnly).toContain(home.path("other"))
  })

  test("applies the denies of the session that started this one", () => {
    const bound = {
      layers: [{ name: "user" as const, rules: rulesFromObject({ edit: { "src/*": "deny" } }) }],
    }
    const { readOnly } = commandBounds({
      policy: { layers: [{ name: "defaults", rules: defaultRules() }], bound },
      worktree: project.directory,
      home: home.directory,
      temporary: [],
      guarded: [],
      secret: [],
      shown: [],
      configDirectories: [],
      programs: { known: false, git: false },
      scanner,
    })
    expect(readOnly).toContain(project.path("src"))
  })

  test("makes the whole project read-only if edit is denied", () => {
    const { writable, readOnly, absent } = bounds({ edit: "deny" }, { git: true })
    expect(writable).toEqual(["/tmp"])
    expect(readOnly).toContain(project.directory)
    expect(absent).toEqual([])
  })

  test("makes an outside directory writable if a rule for edit names its path", async () => {
    await mkdir(home.path("other"))
    expect(bounds({ edit: { "~/other/**": "allow", "/nonexistent/**": "allow" } }).writable).toContain(
      home.path("other"),
    )
    expect(bounds({ edit: { "~/other/**": "ask" } }).writable).not.toContain(home.path("other"))
  })

  test("opens only hosts that a network rule allows, by the last match", () => {
    const network = (permission: PermissionConfig, layers?: Layer[]) =>
      bounds(permission, layers ? { layers } : {}).network
    expect(network({ "*": "allow" })).toBe("closed")
    expect(network({ network: "ask" })).toBe("closed")
    expect(network({ network: { "*": "deny" } })).toBe("closed")
    expect(network({ network: "allow" })).toBe("open")
    const some = network({ network: { "*": "deny", "*.example.org": "allow", "bad.example.org": "ask" } })
    if (typeof some !== "object") throw new Error("a filter was expected")
    const asked = ["a.example.org", "example.org", "bad.example.org", "example.org.evil.test", ""]
    expect(asked.filter((host) => some.allows(host))).toEqual(["a.example.org"])
    expect(some.allowsPrivate?.("10.0.0.1")).toBe(false)
    const inside = network({
      network: { "*": "ask", "10.0.0.1": "allow", "*.test": "allow" },
      private_network: { "db.test": "allow" },
    })
    if (typeof inside !== "object") throw new Error("a filter was expected")
    const hosts = ["10.0.0.1", "10.0.0.2", "db.test", "other.test"]
    expect(hosts.filter((host) => inside.allowsPrivate?.(host))).toEqual(["10.0.0.1", "db.test"])
    const untrusted: Layer = {
      name: "project",
      tightenOnly: true,
      rules: rulesFromObject({ network: "allow" }),
    }
    const closed = network({ network: "deny" }, [untrusted])
    expect(typeof closed === "object" && closed.allows("x")).toBe(false)
  })

  test("closes hosts that a rule for every permission or the parent of a subagent denies", () => {
    const layer = (permission: PermissionConfig): Layer => ({
      name: "user",
      rules: rulesFromObject(permission),
    })
    const open = layer({ network: "allow" })
    const general = networkOf({
      layers: [open, { ...layer({ "*": { "bad.test": "deny" } }), name: "project" }],
    })
    const subagent = networkOf({
      layers: [open],
      bound: { layers: [layer({ network: { "*": "allow", "bad.test": "deny" } })] },
    })
    for (const network of [general, subagent]) {
      if (typeof network !== "object") throw new Error("a filter was expected")
      expect(["bad.test", "good.test"].filter((host) => network.allows(host))).toEqual(["good.test"])
    }
    const bound = (host: string) =>
      networkOf({ layers: [open], bound: { layers: [layer({ network: { "*": "deny", [host]: "allow" } })] } })
    const [one, other] = [bound("a.test"), bound("b.test")]
    expect(typeof one === "object" && typeof other === "object" && one.key !== other.key).toBe(true)
  })

  test("allows a subagent no network without a rule of its own, and no private address that its parent cannot reach", () => {
    const policy = (permission: PermissionConfig) => ({
      layers: [{ name: "user" as const, rules: rulesFromObject(permission) }],
    })
    const parent = policy({ network: { "*": "allow" } })
    expect(networkOf({ ...policy({}), bound: parent })).toBe("closed")
    expect(networkOf({ ...parent, bound: policy({}) })).toBe("closed")
    const named = policy({ network: { "10.0.0.5": "allow" } })
    const reached = [undefined, parent, named].map((bound) => {
      const network = networkOf({ ...named, bound })
      return typeof network === "object" && network.allowsPrivate?.("10.0.0.5")
    })
    expect(reached).toEqual([true, false, true])
  })
})

describe("a command that runs only git", () => {
  test("can write the repository, except its config and hooks", async () => {
    const repository = await temporaryProject({ ".env": "", a: "" }, { git: true })
    await mkdir(repository.path(".git/hooks"), { recursive: true })
    const { writable, readOnly, hidden } = commandBounds({
      policy: { layers: [{ name: "defaults", rules: defaultRules() }] },
      worktree: repository.directory,
      home: home.directory,
      temporary: [],
      guarded: [],
      secret: [],
      shown: [],
      configDirectories: [],
      programs: { known: true, git: true },
      scanner,
    })
    await repository.remove()
    expect(writable).toContain(repository.path(".git"))
    expect(readOnly).toEqual(
      expect.arrayContaining([repository.path(".git/config"), repository.path(".git/hooks")]),
    )
    expect(readOnly).not.toContain(repository.path(".git"))
    expect(hidden).not.toContain(repository.path(".env"))
  })

  test("can write the repository that a .git file names", async () => {
    await project.write("main/.git/worktrees/w/commondir", "../..\n")
    await project.write("main/.git/hooks/x", "")
    await writeFile(project.path(".git"), `gitdir: ${project.path("main/.git/worktrees/w")}\n`)
    const { writable, readOnly } = bounds({}, { git: true })
    expect(writable).toEqual(
      expect.arrayContaining([project.path("main/.git/worktrees/w"), project.path("main/.git")]),
    )
    expect(readOnly).toContain(project.path("main/.git/hooks"))
  })

  test.each([
    ["git commit -m x", true, true],
    ["git add -A && git commit -m 'a b' && git log --oneline | cat", true, true],
    ["git status", true, false],
    ["ls && cat a", true, false],
    ['git commit -m "$(cat a)"', true, true],
    ["git -c core.hooksPath=. commit -m x", false, false],
    ["git --exec-path=. commit", false, false],
    ["GIT_DIR=x git commit -m x", false, false],
    ["git rebase --exec ./x main", false, false],
    ["git rebase -x ./x main", false, false],
    ["git rebase --ex=./x main", false, false],
    ["git submodule foreach ./x", false, false],
    ["git config core.fsmonitor ./x", false, false],
    ["git fetch --upload-pack=./x o", false, false],
    ["git commit -m x; ./x", false, false],
    ["git commit -m x > .git/config", false, false],
    ["git commit -m x | tee .git/commondir", false, false],
    ["./git commit -m x", false, false],
    ["git $X", false, false],
    ["git ci", false, false],
    ["env git commit -m x", false, false],
    ["git commit -m x &&", false, false],
  ])("%s: known %s, changes the repository %s", async (text, known, git) => {
    const place = { cwd: project.directory, env: { HOME: project.directory } }
    expect(await knownPrograms(text, place)).toEqual({ known, git })
  })

  test("reads the user's hooks from the configuration that the environment of the command names", async () => {
    const config = project.path("config-with-hooks")
    await writeFile(config, "[core]\n\thooksPath = /hooks\n")
    const knows = (env: Record<string, string>) =>
      knownPrograms("git commit -m x", { cwd: project.directory, env: { HOME: project.directory, ...env } })
    expect(await knows({})).toEqual({ known: true, git: true })
    expect(await knows({ GIT_CONFIG_GLOBAL: config })).toEqual({ known: false, git: false })
    expect(await knows({ GIT_CONFIG_SYSTEM: config })).toEqual({ known: false, git: false })
    expect(await knows({ GIT_CONFIG_COUNT: "1" })).toEqual({ known: false, git: false })
    expect(await knows({ GIT_CONFIG_PARAMETERS: "'core.hooksPath=x'" })).toEqual({ known: false, git: false })
  })
})
