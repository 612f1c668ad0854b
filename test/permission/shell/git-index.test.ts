import { execFileSync } from "node:child_process"
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import type { PermissionConfig } from "../../../src/permission/rules.ts"
import { trackedPaths } from "../../../src/permission/shell/git-repository.ts"
import { temporaryDirectory, verdictOf } from "../support.ts"

function git(directory: string, ...args: string[]): void {
  const env = { PATH: process.env.PATH, GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" }
  execFileSync("git", args, { cwd: directory, env, stdio: "ignore" })
}

/** A repository that tracks the files. */
function repository(files: readonly string[], ...init: string[]): string {
  const directory = temporaryDirectory()
  git(directory, "init", "-q", ...init)
  for (const file of files) {
    mkdirSync(dirname(join(directory, file)), { recursive: true })
    writeFileSync(join(directory, file), `${file}\n`)
  }
  if (files.length > 0) git(directory, "add", "-f", ".")
  return directory
}

const files = ["a.ts", "sub/b.ts", "sub/bcdefghijklm.ts", "sub/ünïcode.ts", `long/${"x".repeat(200)}`, "z"]

describe("trackedPaths", () => {
  test.each(["2", "4"])("reads an index of version %s", async (version) => {
    const directory = repository(files)
    git(directory, "update-index", "--index-version", version)
    expect(trackedPaths(join(directory, ".git"))?.sort()).toEqual([...files].sort())
  })

  test("reads entries with extended flags", async () => {
    const directory = repository(files)
    writeFileSync(join(directory, "later"), "")
    git(directory, "add", "--intent-to-add", "later")
    expect(trackedPaths(join(directory, ".git"))).toHaveLength(files.length + 1)
  })

  test("returns nothing where nothing was added", async () => {
    expect(trackedPaths(join(repository([]), ".git"))).toEqual([])
  })

  test("returns undefined for a split index, another hash, and a file that is not an index", async () => {
    const split = repository(files)
    git(split, "update-index", "--split-index")
    expect(trackedPaths(join(split, ".git"))).toBeUndefined()
    const other = repository(files, "--object-format=sha256")
    expect(trackedPaths(join(other, ".git"))).toBeUndefined()
    const broken = repository(files)
    for (const bytes of ["", "DIRC", "DIRC\0\0\0\u0002\0\0\u00ff\u00ff"]) {
      writeFileSync(join(broken, ".git/index"), bytes)
      expect(trackedPaths(join(broken, ".git"))).toBeUndefined()
    }
  })
})

describe("git that shows contents of files", () => {
  const verdict = async (worktree: string, command: string, rules: PermissionConfig = {}) =>
    (await verdictOf(rules, "bash", command, { worktree })).action

  const showing = [
    "git diff",
    "git show HEAD",
    "git log -p",
    "git diff --stat -p",
    "git status -v",
    "git log -U3",
    "git log -wp",
    "git stash show -p",
    "git stash show --patch stash",
    "git stash list -p",
    "git stash list --cc",
  ]
  const naming = [
    "git diff --stat",
    "git show --name-only",
    "git log",
    "git status",
    "git log --stat",
    "git log -Sup",
    "git stash list",
    "git stash show --stat",
    "git branch",
  ]

  test.each(showing)("%s asks where a secret is tracked", async (command) => {
    expect(await verdict(repository(["a.ts", "sub/.env"]), command)).toBe("ask")
    expect(await verdict(repository(["a.ts", ".env.example"]), command)).toBe("allow")
  })

  test.each(naming)("%s does not", async (command) => {
    expect(await verdict(repository(["a.ts", ".env"]), command)).toBe("allow")
  })

  test("asks for files that a rule denies, whatever allows the command", async () => {
    const worktree = repository(["a.ts", "private/x"])
    expect(await verdict(worktree, "git diff")).toBe("allow")
    expect(await verdict(worktree, "git diff", { read: { "private/*": "deny" } })).toBe("ask")
    const all: PermissionConfig = { bash: { "git *": "allow" } }
    const denied: PermissionConfig = { ...all, read: { "private/*": "deny" } }
    for (const command of [
      ...showing,
      "git diff HEAD -- a.ts",
      "git --no-pager log --max-count 1 -p",
      "git format-patch --stdout -1",
      "git stash show",
      "git stash show -up",
      "git add -p",
      "git whatchanged -p",
      "git diff-tree --patch HEAD",
    ]) {
      expect([command, await verdict(worktree, command, denied)]).toEqual([command, "ask"])
      expect([command, await verdict(worktree, command, all)]).toEqual([command, "allow"])
    }
    for (const command of [...naming, "git push -u origin x", "git commit -m v", "git stash push -u"])
      expect([command, await verdict(worktree, command, denied)]).toEqual([command, "allow"])
  })
})
