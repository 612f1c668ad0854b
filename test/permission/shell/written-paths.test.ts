import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { PermissionConfig } from "../../../src/permission/rules.ts"
import { temporaryDirectory, verdictOf } from "../support.ts"

const rules: PermissionConfig = {
  bash: { "*": "allow", "sed -i *": "allow", "curl -o *": "allow", "dd of=*": "allow" },
  edit: { "*": "allow", "src/v3/*": "deny" },
  external_directory: "allow",
}

function createWorktree(): string {
  const worktree = temporaryDirectory()
  mkdirSync(join(worktree, "src/v3"), { recursive: true })
  for (const file of ["a.ts", "src/b.ts", "src/v3/c.ts"]) writeFileSync(join(worktree, file), "x\n")
  return worktree
}

const verdict = async (command: string) =>
  (await verdictOf(rules, "bash", command, { worktree: createWorktree() })).action

describe("a denied path", () => {
  it.each([
    "cp a.ts src/v3/c.ts",
    "cp a.ts src/v3",
    "cp -t src/v3 a.ts",
    "cp --target-directory=src/v3 a.ts",
    "mv src/v3/c.ts a.ts",
    "mv a.ts src/v3/",
    "ln -s a.ts src/v3/d.ts",
    "install -m 644 a.ts src/v3/c.ts",
    "sed -i s/x/y/ src/v3/c.ts",
    "sed -i -e s/x/y/ a.ts src/v3/c.ts",
    "perl -i -pe s/x/y/ src/v3/c.ts",
    "tee src/v3/c.ts",
    "dd if=a.ts of=src/v3/c.ts",
    "rm src/v3/c.ts",
    "rm src/v3/*.ts",
    "chmod +x src/v3/c.ts",
    "curl -o src/v3/c.ts https://example.com",
    "sort -o src/v3/c.ts a.ts",
    "git checkout -- src/v3/c.ts",
    "git restore src/v3/c.ts",
    "git rm src/v3/c.ts",
    "cd src && cp ../a.ts v3/c.ts",
    "timeout 5 cp a.ts src/v3/c.ts",
    "/bin/cp a.ts src/v3/c.ts",
    "echo x > src/v3/c.ts",
  ])("is denied for %s", async (command) => {
    expect(await verdict(command)).toBe("deny")
  })

  it.each([
    "rm -r src",
    "mv src other",
    "rm -r .",
    "cp -r src/. src",
    'cp a.ts "$TARGET"',
    "find src -exec rm {} +",
    "tar -xf a.tar -C src",
    "git checkout -- .",
  ])("asks for %s, which may write it", async (command) => {
    expect(await verdict(command)).toBe("ask")
  })

  it.each([
    "cp a.ts src/b.ts",
    "cp a.ts src",
    "cp src/v3/c.ts a.ts",
    "mv a.ts src/d.ts",
    "sed -n s/x/y/p src/v3/c.ts",
    "sed -i s/x/y/ a.ts",
    "cat src/v3/c.ts",
    "git checkout main",
    "rm src/b.ts",
  ])("does not stop %s", async (command) => {
    expect(await verdict(command)).toBe("allow")
  })
})
