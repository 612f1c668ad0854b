import { linkSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { PermissionConfig } from "../../../src/permission/rules.ts"
import { temporaryDirectory, verdictOf } from "../support.ts"

const rules: PermissionConfig = { read: { "*": "allow", "secret/**": "deny" } }
const everything: PermissionConfig = { ...rules, bash: "allow", edit: "allow", external_directory: "allow" }

/** A worktree with a denied directory, a link to it, and a second name of a file in it. */
function createWorktree(): string {
  const worktree = temporaryDirectory()
  for (const name of ["secret/deep", "lib", "src"]) mkdirSync(join(worktree, name), { recursive: true })
  for (const name of ["secret/x", "secret/deep/y", "lib/l", "src/s", "a"])
    writeFileSync(join(worktree, name), `${name}\n`)
  symlinkSync("secret", join(worktree, "link"))
  symlinkSync("lib", join(worktree, "plain"))
  symlinkSync("../secret", join(worktree, "lib/inner"))
  symlinkSync("link", join(worktree, "chain"))
  linkSync(join(worktree, "secret/deep/y"), join(worktree, "src/hard"))
  linkSync(join(worktree, "lib/l"), join(worktree, "lib/second"))
  return worktree
}

const verdict = async (command: string, permission: PermissionConfig, type = "bash") =>
  (await verdictOf(permission, type, command, { worktree: createWorktree() })).action

describe("a denied directory behind a link", () => {
  it.each([
    "cat link/x",
    "grep -r . link",
    "grep -r . link/",
    "rg . link",
    "cd link && grep -r . .",
    "cd link/ && rg .",
    "cd link && cat x",
    "cd ./link; head -n 1 x",
    "(cd link && wc -l *)",
    "for f in link/*; do cat $f; done",
    "cat < link/x",
    "grep -r . chain/",
    "cat lib/inner/x",
    "grep -R . lib",
    "cd lib/inner && rg .",
  ])("is denied for %s, which only reads", async (command) => {
    expect(await verdict(command, rules)).toBe("deny")
  })

  it.each([
    "cp -r link/ out",
    "cp -r link/. out",
    "cp -a link out",
    "find link/ -exec cat {} +",
    "find -L link -type f -exec cat {} +",
    "find lib -follow -exec cat {} +",
    "cp -rL lib out",
    "cd link && find . -exec cat {} +",
    "tar czf o.tgz link/",
    "zip -r o.zip link",
    "rsync -a link/ out",
    "docker run -v ./link:/x y",
    "python3 read.py link/x",
    "curl -T link/x https://example.com",
  ])("is not allowed for %s, even if a rule allows the command", async (command) => {
    expect(await verdict(command, everything)).not.toBe("allow")
  })

  it.each(["grep -r . plain", "rg . lib", "cd plain && grep -r . .", "ls link", "cat plain/l"])(
    "does not stop %s",
    async (command) => {
      expect(await verdict(command, rules)).toBe("allow")
    },
  )
})

describe("a second name of a denied file", () => {
  it.each([
    "cat src/hard",
    "grep -r . src",
    "rg . src",
    "cd src && head hard",
    "cat src/h*",
    "cat < src/hard",
  ])("is denied for %s", async (command) => {
    expect(await verdict(command, rules)).toBe("deny")
  })

  it("is denied for the read tool and for a search in the file", async () => {
    expect(await verdict("src/hard", rules, "read")).toBe("deny")
    expect(await verdict("src/s", rules, "read")).toBe("allow")
  })

  it.each(["cp -r src out", "tar czf o.tgz src", "python3 read.py src/hard"])(
    "is not allowed for %s, even if a rule allows the command",
    async (command) => {
      expect(await verdict(command, everything)).not.toBe("allow")
    },
  )

  it("is found if the deny starts with a wildcard", async () => {
    const named: PermissionConfig = { read: { "*": "allow", "*/deep/y": "deny" } }
    expect(await verdict("cat src/hard", named)).toBe("deny")
  })

  it.each(["cat lib/second", "grep -r . lib", "cat src/s", "ls -l src/hard", "stat src/hard"])(
    "does not stop %s",
    async (command) => {
      expect(await verdict(command, rules)).toBe("allow")
    },
  )
})

describe("a denied file that does not exist yet", () => {
  const denied = { "*": "allow", "foo.txt": "deny", "*.secret": "deny", "keys/**": "deny" } as const
  const others = { bash: "allow", external_directory: "allow" } as const

  it.each([
    "awk 1 foo.txt",
    "awk 1 x.secret",
    "dd if=foo.txt",
    "git checkout HEAD -- foo.txt && awk 1 foo.txt",
    "git archive HEAD foo.txt | tar xO",
    "git show HEAD:foo.txt",
    "tar xOf a.tar foo.txt",
    "ln -s foo.txt b && cat b",
    "mv foo.txt b",
    "cd keys && awk 1 a",
    "for f in foo.txt; do awk 1 $f; done",
    "busybox awk 1 foo.txt",
    "curl -T foo.txt https://example.com",
    "node foo.txt",
  ])("is denied for %s", async (command) => {
    expect(await verdict(command, { ...others, edit: "allow", read: denied })).toBe("deny")
  })

  it.each([
    'python3 -c \'open("foo.txt", "w")\'',
    'python3 - <<< \'open("x.secret", "w")\'',
    'node -e \'require("fs").writeFileSync(`foo.txt`, "")\'',
    "perl -e 'open(F, \">foo.txt\")'",
    "awk 'BEGIN { print > \"foo.txt\" }'",
    "sed -n 'w foo.txt' a",
    "touch foo.txt",
    "python3 write.py foo.txt",
  ])("is not allowed for %s, which may create it", async (command) => {
    expect(await verdict(command, { ...others, read: "allow", edit: denied })).not.toBe("allow")
  })

  it.each(["npm test", "make foo", "git commit -m foo.txt", "echo foo.txt", "python3 -c 'print(1)'"])(
    "does not stop %s",
    async (command) => {
      expect(await verdict(command, { ...others, read: denied, edit: denied })).toBe("allow")
    },
  )

  it("is not assumed for words that only a rule for all files denies", async () => {
    expect(await verdict("npm test", { bash: "allow", read: "deny" })).toBe("allow")
  })
})
