import { linkSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import type { PermissionConfig } from "../../../src/permission/rules.ts"
import { maxEntries } from "../../../src/permission/shell/directory-files.ts"
import { temporaryDirectory, verdictOf } from "../support.ts"

/** A worktree with a secret, and links that lead out of it, to the secret, around and to an ordinary file. */
function createWorktree(): string {
  const worktree = temporaryDirectory()
  const outside = temporaryDirectory()
  writeFileSync(join(outside, "notes"), "private\n")
  for (const name of ["src", "plain", "out", "secret", "round", "empty"]) mkdirSync(join(worktree, name))
  writeFileSync(join(worktree, ".env"), "KEY=1\n")
  writeFileSync(join(worktree, "src/a.ts"), "a\n")
  symlinkSync(join(worktree, "src/a.ts"), join(worktree, "plain/link"))
  symlinkSync(join(outside, "notes"), join(worktree, "out/link"))
  symlinkSync(join(worktree, ".env"), join(worktree, "secret/link"))
  symlinkSync(worktree, join(worktree, "round/link"))
  return worktree
}

const verdict = async (worktree: string, command: string, rules: PermissionConfig = {}) =>
  (await verdictOf(rules, "bash", command, { worktree })).action

describe("links in a directory", () => {
  test.each(["out", "secret", "round"])("ask for diff, which follows them: %s", async (name) => {
    const worktree = createWorktree()
    expect(await verdict(worktree, `diff -N ${name} empty`)).toBe("ask")
    expect(await verdict(worktree, `diff ${name} src`)).toBe("ask")
  })

  test("do not ask for diff where the targets are allowed, nor for grep, which follows none", async () => {
    const worktree = createWorktree()
    expect(await verdict(worktree, "diff -N plain src")).toBe("allow")
    expect(await verdict(worktree, "grep -r a out round/link/src")).toBe("allow")
  })

  test.each(["grep -R a out", "cp -rL out plain", "tar chf - out", "rsync -aL out plain", "zip -r x out"])(
    "%s asks although a rule allows the program",
    async (command) => {
      const rules: PermissionConfig = { bash: { "*": "allow" } }
      const worktree = createWorktree()
      expect(await verdict(worktree, command, rules)).toBe("ask")
      expect(await verdict(worktree, command.replace("out", "plain"), rules)).toBe("allow")
    },
  )
})

describe("hidden files", () => {
  test.each([
    "-g .env",
    "-g '{.env,x}'",
    "--glob='[.]env*'",
    "--iglob .ENV",
    "-g '**/.e*'",
    "-tsh",
    "-g '*'",
  ])("rg %s asks, because it reads hidden files without --hidden", async (options) => {
    expect(await verdict(createWorktree(), `rg ${options} KEY`)).toBe("ask")
  })

  test.each(["", "-g '*.ts'", "-t ts", "-g 'src/**'", "-g '!.env'", "-g '{a,b}.md'"])(
    "rg %s does not",
    async (options) => {
      expect(await verdict(createWorktree(), `rg ${options} KEY`)).toBe("allow")
    },
  )

  test.each([".gitignore", ".ignore", ".rgignore", "src/.ignore", ".git/info/exclude"])(
    "rg asks if %s includes a hidden file again",
    async (file) => {
      const worktree = createWorktree()
      mkdirSync(join(worktree, ".git/info"), { recursive: true })
      writeFileSync(join(worktree, "src/.env"), "KEY=1\n")
      expect(await verdict(worktree, "rg KEY src")).toBe("allow")
      writeFileSync(join(worktree, file), "*.log\n!.env\n")
      expect(await verdict(worktree, "rg KEY src")).toBe("ask")
    },
  )
})

test("asks for a directory with too many entries, and says why", { timeout: 120_000 }, async () => {
  const worktree = createWorktree()
  const many = join(worktree, "many")
  mkdirSync(many)
  // A link takes a tenth of the time of a new file.
  for (let number = 0; number <= maxEntries; number++)
    linkSync(join(worktree, "src/a.ts"), join(many, String(number)))
  const { action, checks } = await verdictOf({}, "bash", "rg a many", { worktree })
  expect(action).toBe("ask")
  expect(checks.map(({ reason }) => reason)).toContainEqual(
    expect.stringContaining("contains too many entries"),
  )
})
