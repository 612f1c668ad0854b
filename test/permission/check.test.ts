import { execFileSync } from "node:child_process"
import { linkSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { homeSecrets } from "../../src/permission/protected-files.ts"
import type { PermissionAsk, Scope } from "../../src/permission/request.ts"
import type { PermissionConfig } from "../../src/permission/rules.ts"
import { harness, policyOf, scopeOf, temporaryDirectory, verdictOf } from "./support.ts"

/** Creates a worktree with all kinds of links, a home directory and a directory beside the worktree. */
function layOut() {
  const root = temporaryDirectory()
  const [worktree, home, neighbour, own] = ["w", "h", "w-evil", "own"].map((name) => join(root, name)) as [
    string,
    string,
    string,
    string,
  ]
  for (const directory of [join(worktree, "sub"), join(home, ".ssh"), neighbour, own])
    mkdirSync(directory, { recursive: true })
  const files = [
    [worktree, "a"],
    [worktree, ".env"],
    [worktree, "src.ts"],
    [home, ".bashrc"],
    [home, ".ssh/id"],
    [neighbour, "a"],
  ] as const
  for (const [directory, name] of files) writeFileSync(join(directory, name), "x")
  symlinkSync(join(home, ".bashrc"), join(worktree, "to-bashrc"))
  symlinkSync(home, join(worktree, "to-home"))
  symlinkSync(".env", join(worktree, "to-env"))
  symlinkSync("loop", join(worktree, "loop"))
  symlinkSync(join(home, "not-yet"), join(worktree, "to-nothing"))
  linkSync(join(worktree, ".env"), join(worktree, "hard-env"))
  linkSync(join(home, ".bashrc"), join(worktree, "hard-bashrc"))
  return { worktree, home, neighbour, own }
}

type Layout = ReturnType<typeof layOut>

async function verdict(
  layout: Layout,
  rules: PermissionConfig,
  request: Partial<PermissionAsk>,
): Promise<string> {
  const { permission } = harness({ home: layout.home })
  const scope: Scope = scopeOf(policyOf(rules), layout.worktree, [layout.own])
  return (await permission.check({ permission: "read", patterns: [], ...request }, scope)).action
}

describe("read", () => {
  test.each<[string, PermissionConfig, (layout: Layout) => string, string]>([
    ["a file inside", {}, () => "a", "allow"],
    ["a file inside by its absolute path", {}, ({ worktree }) => join(worktree, "a"), "allow"],
    ["a missing file", {}, () => "none/at/all", "allow"],
    ["a directory whose name has the same prefix", {}, ({ neighbour }) => join(neighbour, "a"), "ask"],
    ["a path that leaves with ..", {}, () => "sub/../../w-evil/a", "ask"],
    ["secrets", {}, () => ".env", "ask"],
    ["secrets under a general allow", { read: "allow" }, () => ".env", "ask"],
    ["secrets in another case", {}, () => ".ENV", "ask"],
    ["secrets that a rule names", { read: { ".env": "allow" } }, () => ".env", "allow"],
    ["secrets that a pattern names", { read: { "*.env": "allow" } }, () => ".env", "allow"],
    ["a template", {}, () => ".env.example", "allow"],
    ["a link to secrets", {}, () => "to-env", "ask"],
    ["a link to what is denied", { read: { "**/.env": "deny" } }, () => "to-env", "deny"],
    ["a hard link to secrets", {}, () => "hard-env", "ask"],
    ["a link to a file outside", {}, () => "to-bashrc", "ask"],
    ["a file behind a link to a directory outside", {}, () => "to-home/.ssh/id", "ask"],
    [
      "a denied file behind a link to a directory outside",
      { read: { "~/.ssh/**": "deny" } },
      () => "to-home/.ssh/id",
      "deny",
    ],
    ["a path through /proc/self/root", {}, ({ home }) => `/proc/self/root${home}/.bashrc`, "ask"],
    ["a link loop with everything allowed", { "*": "allow" }, () => "loop", "ask"],
    ["a file of the session itself", { read: "ask" }, ({ own }) => join(own, "x"), "allow"],
  ])("%s", async (_, rules, path, expected) => {
    const layout = layOut()
    expect(await verdict(layout, rules, { patterns: [path(layout)] })).toBe(expected)
  })

  test("allows a directory outside the worktree that a rule names", async () => {
    const layout = layOut()
    const rules: PermissionConfig = { external_directory: { "~/*": "allow" } }
    expect(await verdict(layout, rules, { patterns: ["to-home/.bashrc"] })).toBe("allow")
    expect(await verdict(layout, rules, { patterns: [join(layout.neighbour, "a")] })).toBe("ask")
  })

  test("does not extend an allowed outside directory to the targets of its links", async () => {
    const layout = layOut()
    symlinkSync(layout.neighbour, join(layout.home, "link"))
    const rules: PermissionConfig = { external_directory: { "~/*": "allow" } }
    expect(await verdict(layout, rules, { patterns: [join(layout.home, "link/a")] })).toBe("ask")
  })
})

describe("edit", () => {
  test("does not count the backup of a file that another call changes as a second name", async () => {
    const layout = layOut()
    const [file, backup] = ["a", ".tackle-0123456789ab.tmp"].map((name) => join(layout.worktree, name)) as [
      string,
      string,
    ]
    linkSync(file, backup)
    const check = () => verdict(layout, { edit: "allow" }, { permission: "edit", patterns: ["a"] })
    expect(await check()).toBe("allow")
    linkSync(file, join(layout.worktree, "sub/other"))
    expect(await check()).toBe("ask")
    writeFileSync(join(layout.worktree, ".tackle-ba9876543210.tmp"), "x")
    expect(await check()).toBe("ask")
  })

  const all = ({ worktree }: Layout): PermissionConfig => ({ edit: { [`${worktree}/**`]: "allow" } })

  test.each([
    ["a", "allow"],
    ["new/file", "allow"],
    ["to-bashrc", "ask"],
    ["to-nothing", "ask"],
    ["hard-bashrc", "ask"],
    [".git/hooks/x", "ask"],
    ["sub/.git", "ask"],
    [".MCP.json", "ask"],
    [".github/x", "allow"],
    ["AGENTS.md", "ask"],
    ["conftest.py", "ask"],
  ])("%s with the whole worktree allowed: %s", async (path, expected) => {
    const layout = layOut()
    expect(await verdict(layout, all(layout), { permission: "edit", patterns: [path] })).toBe(expected)
  })

  test("allows a protected file that a rule names", async () => {
    const layout = layOut()
    const rules: PermissionConfig = { edit: { "*": "allow", ".git/**": "allow", ".github/**": "allow" } }
    expect(await verdict(layout, rules, { permission: "edit", patterns: [".git/config"] })).toBe("allow")
    expect(await verdict(layout, rules, { permission: "edit", patterns: [".npmrc"] })).toBe("ask")
  })

  test("asks before changing the session's own directory", async () => {
    const layout = layOut()
    expect(await verdict(layout, {}, { permission: "edit", patterns: [join(layout.own, "x")] })).toBe("ask")
  })

  test("treats a linked worktree and its target as one worktree", async () => {
    const layout = layOut()
    const alias = `${layout.worktree}-alias`
    symlinkSync(layout.worktree, alias)
    const { permission } = harness({ home: layout.home })
    const policy = policyOf({ edit: { "src/*": "allow" } })
    const scope = scopeOf(policy, alias)
    expect(
      await permission.check({ permission: "edit", patterns: [join(alias, "src/a")] }, scope),
    ).toMatchObject({
      action: "allow",
      checks: [{ permission: "edit", pattern: "src/a" }],
    })
  })
})

describe("other requests", () => {
  test("asks for paths outside the worktree with every permission", async () => {
    const layout = layOut()
    expect(await verdict(layout, {}, { permission: "glob", patterns: ["*"], paths: [layout.home] })).toBe(
      "ask",
    )
    expect(await verdict(layout, {}, { permission: "glob", patterns: ["*"], paths: ["sub", "."] })).toBe(
      "allow",
    )
    expect(await verdict(layout, {}, { permission: "glob", patterns: ["*"], paths: ["to-home"] })).toBe("ask")
  })

  test("judges a search in one file as reading it", async () => {
    const layout = layOut()
    expect(await verdict(layout, {}, { permission: "grep", patterns: ["x"], paths: [".env"] })).toBe("ask")
    expect(await verdict(layout, {}, { permission: "grep", patterns: ["x"], paths: ["."] })).toBe("allow")
  })

  test("denies if any pattern denies, else asks if any pattern asks", async () => {
    const rules: PermissionConfig = { my_tool: { a: "allow", d: "deny" } }
    const check = (patterns: string[]) => verdict(layOut(), rules, { permission: "my_tool", patterns })
    expect(await check(["a"])).toBe("allow")
    expect(await check(["a", "x"])).toBe("ask")
    expect(await check(["x", "d", "a"])).toBe("deny")
  })

  test("asks for a request without patterns", async () => {
    expect(
      await verdict(layOut(), { my_tool: { a: "allow" } }, { permission: "my_tool", patterns: [] }),
    ).toBe("ask")
  })

  test("judges to-do tools as todo", async () => {
    expect((await verdictOf({}, "todowrite", "x")).action).toBe("allow")
    expect((await verdictOf({ todo: "deny" }, "todowrite", "x")).action).toBe("deny")
  })
})

describe("commands in a real worktree", () => {
  test.each<[string, PermissionConfig, string]>([
    ["cat to-bashrc", {}, "ask"],
    ["cat to-home/../a", {}, "ask"],
    ["cat to-home/../h/.bashrc", { bash: { "cat *": "allow" } }, "ask"],
    ["cat *.ts", { bash: { "cat *": "allow" } }, "allow"],
    ["cat .e*", { bash: { "cat *": "allow" } }, "ask"],
    ["cat *", { bash: { "cat *": "allow" } }, "ask"],
    ["cd to-home && ls", {}, "ask"],
    ["grep -r x .", {}, "ask"],
    ["grep -r x sub", {}, "allow"],
    ["rg x", {}, "allow"],
    ["rg --hidden x", {}, "ask"],
    ["rg x", { read: { "src.ts": "deny" } }, "deny"],
    ["cat hard-env", {}, "ask"],
  ])("%s under %j: %s", async (command, rules, expected) => {
    expect(await verdict(layOut(), rules, { permission: "bash", patterns: [command] })).toBe(expected)
  })

  test("asks for a working directory outside the worktree even if all commands are allowed", async () => {
    const layout = layOut()
    const request = { permission: "bash", patterns: ["ls"], metadata: { workdir: layout.home } }
    expect(await verdict(layout, { bash: "allow" }, request)).toBe("ask")
  })

  test("does not allow a program of the worktree by the name of a system program", async () => {
    const layout = layOut()
    writeFileSync(join(layout.worktree, "ls"), "#!/bin/sh\n", { mode: 0o755 })
    const { permission } = harness({ home: layout.home })
    const check = async (searchPath: string) => {
      const scope = {
        ...scopeOf(policyOf({ bash: { "*": "ask", "ls *": "allow" } }), layout.worktree),
        searchPath,
      }
      return (await permission.check({ permission: "bash", patterns: ["cat a; ls"] }, scope)).commands?.map(
        (command) => command.action,
      )
    }
    expect(await check(`/usr/bin:/bin:${layout.worktree}`)).toEqual(["ask", "allow"])
    expect(await check(`${layout.worktree}:/usr/bin:/bin`)).toEqual(["ask", "ask"])
    expect(await check("/usr/bin:/bin:.")).toEqual(["ask", "allow"])
    expect(await check(".:/usr/bin")).toEqual(["ask", "ask"])
  })
})

describe("verdict", () => {
  test("lists every command with the rule that decided it", async () => {
    const verdict = await verdictOf(
      { bash: { "*": "ask", "npm *": "allow", "rm *": "deny" } },
      "bash",
      "npm test && r''m x; $y",
    )
    expect(verdict).toMatchObject({
      action: "deny",
      commands: [
        {
          argv: ["npm", "test"],
          pattern: "npm test",
          action: "allow",
          rule: { pattern: "npm *", source: { file: "tackle.json" } },
        },
        { argv: ["rm", "x"], pattern: "rm x", action: "deny", rule: { pattern: "rm *" } },
        { argv: ["$y"], action: "ask", reason: expect.stringContaining("known only at run time") },
      ],
    })
  })

  test("names a read-only proof as the source of the rule", async () => {
    const verdict = await verdictOf({}, "bash", "ls -l")
    expect(verdict.commands).toMatchObject([
      { action: "allow", rule: { source: { file: "defaults: proved read-only" } } },
    ])
  })
})

describe("secrets of the home directory", () => {
  const open = { external_directory: { "~/*": "allow" }, bash: { "*": "allow" } } as const
  const names = [
    ".aws/credentials",
    ".ssh/id",
    ".ssh/id_ed25519_sk",
    ".config/gh/hosts.yml",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".local/share/opencode/auth.json",
    ".local/share/fish/fish_history",
    ".config/BraveSoftware/Brave-Browser/Default/Cookies",
    ".config/microsoft-edge/Default/Login Data",
    ".config/google-chrome/Default/Cookies",
    ".mozilla/firefox/x/logins.json",
    ".AWS/credentials",
  ]

  test.each(names)("asks for ~/%s although its directory is allowed", async (name) => {
    const layout = layOut()
    const path = join(layout.home, name)
    expect(await verdict(layout, open, { patterns: [path] })).toBe("ask")
    expect(await verdict(layout, open, { patterns: [`~/${name}`] })).toBe("ask")
    expect(await verdict(layout, open, { permission: "edit", patterns: [path] })).toBe("ask")
    expect(await verdict(layout, open, { permission: "bash", patterns: [`cat '${path}'`] })).toBe("ask")
    // The home directory is the worktree.
    expect(await verdict({ ...layout, worktree: layout.home }, {}, { patterns: [name] })).toBe("ask")
    const named = { ...open, read: { [`~/${name.toLowerCase()}`]: "allow", [path]: "allow" } } as const
    expect(await verdict(layout, named, { patterns: [path] })).toBe("allow")
  })

  test("asks for the names that the sandbox hides", async () => {
    const layout = layOut()
    for (const { path } of homeSecrets(layout.home))
      expect(await verdict(layout, open, { patterns: [path] }), path).toBe("ask")
  })

  test("asks for a search or a link that reaches them, but not for other files", async () => {
    const layout = layOut()
    symlinkSync(join(layout.home, ".ssh"), join(layout.worktree, "keys"))
    const judge = (text: string) => verdict(layout, open, { permission: "bash", patterns: [text] })
    expect(await judge("cat keys/id")).toBe("ask")
    expect(await judge(`grep -r x ${layout.home}`)).toBe("ask")
    expect(await judge(`cat ${layout.home}/.bashrc`)).toBe("allow")
    expect(await verdict(layout, open, { patterns: ["~/.config/other/file"] })).toBe("allow")
  })
})

describe("commands in a sandbox", () => {
  const judge = async (
    text: string,
    rules: PermissionConfig = {},
    { works = true, allows = true, confined = true } = {},
  ) => {
    const layout = layOut()
    const scope = {
      ...scopeOf(policyOf(rules), layout.worktree),
      sandbox: { works: async () => works, allows },
    }
    const { permission } = harness({ home: layout.home })
    return (await permission.check({ permission: "bash", patterns: [text], confined }, scope)).action
  }

  test.each<[string, PermissionConfig, string]>([
    ["npm test", {}, "allow"],
    ["touch new && ./build.sh", {}, "allow"],
    ["python3 -c 'print(1)'", {}, "allow"],
    ["echo x > made", {}, "allow"],
    ["npm test", { bash: "ask" }, "allow"],
    ["npm test", { bash: { "npm *": "ask" } }, "ask"],
    ["npm test", { bash: { "npm *": "deny" } }, "deny"],
    ["sh -c 'npm test'", { bash: { "npm *": "deny" } }, "deny"],
    ["$X test", { bash: { "npm *": "deny" } }, "ask"],
    ["touch gen/x", { edit: { "gen/*": "deny" } }, "deny"],
    ["touch gen/x", { edit: { "gen/*": "ask" } }, "ask"],
    ["cat .env", {}, "ask"],
    ["cp .env copy", {}, "ask"],
    ["echo x > .env", {}, "ask"],
    ["echo x > AGENTS.md", {}, "ask"],
    ["touch ../outside", {}, "ask"],
    ["node x.js > $OUT", {}, "ask"],
    ["curl https://example.com", {}, "ask"],
    ["timeout 5 curl https://example.com", {}, "ask"],
    ["git push", {}, "ask"],
    ["git -C . fetch", {}, "ask"],
    ["git -c fetch.prune=true --no-pager fetch", {}, "ask"],
    ["git -C . gc", {}, "allow"],
    ["curl https://example.com", { network: "allow" }, "allow"],
  ])("%s with %j: %s", async (text, rules, expected) => {
    expect(await judge(text, rules)).toBe(expected)
  })

  test("ask if they are too long to check", async () => {
    expect(await judge("x".repeat(300_000), {})).toBe("ask")
  })

  test("ask as usual without a working sandbox, without the setting, and for other tools", async () => {
    expect(await judge("npm test", {}, { works: false })).toBe("ask")
    expect(await judge("npm test", {}, { allows: false })).toBe("ask")
    expect(await judge("npm test", {}, { confined: false })).toBe("ask")
  })

  test("may read the state of a repository with submodules, but not contents", async () => {
    const layout = layOut()
    execFileSync("git", ["init", "-q"], { cwd: layout.worktree })
    writeFileSync(join(layout.worktree, ".gitmodules"), '[submodule "s"]\n\tpath = s\n\turl = ./s\n')
    const verdictIn = async (text: string, works: boolean) => {
      const scope = {
        ...scopeOf(policyOf({}), layout.worktree),
        sandbox: { works: async () => works, allows: false },
      }
      const request = { permission: "bash", patterns: [text], confined: true }
      return (await harness({ home: layout.home }).permission.check(request, scope)).action
    }
    expect(await verdictIn("git status", true)).toBe("allow")
    expect(await verdictIn("git status --short && git log --oneline -3", true)).toBe("allow")
    expect(await verdictIn("git diff", true)).toBe("ask")
    expect(await verdictIn("git status", false)).toBe("ask")
  })
})
