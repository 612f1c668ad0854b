// biome-ignore-all lint/suspicious/noTemplateCurlyInString: texts for a shell, not templates
import { execFileSync, spawnSync } from "node:child_process"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { knownPrograms } from "../../src/permission/shell/read-only-proof.ts"
import { isComplete } from "../runs.ts"
import { harness, policyOf, scopeOf, temporaryDirectory } from "./support.ts"

const rules = {
  bash: { "*": "allow", "rm *": "deny", "a*b*c*d*e": "deny" },
  read: { "secret/**": "deny", "*.key*x": "deny" },
  edit: { "gen/**": "deny" },
} as const

/** Returns the full length in CI, and an eighth otherwise. */
const long = (full: number) => (isComplete ? full : Math.ceil(full / 8))
const many = long(50_000)
const list = (count: number, write: (index: number) => string, separator = " ") =>
  Array.from({ length: count }, (_, index) => write(index)).join(separator)

/**
 * Texts for which a check takes minutes or hours if its time grows with the square of their length. In CI they are
 * longer.
 */
const slow: Record<string, string> = {
  "open braces": `echo ${"{a,".repeat(long(60_000))}`,
  "open brackets": `echo x${"[".repeat(many)}*`,
  "dots in a path": `cat a/${"./".repeat(many)}x`,
  "separators in a word": `x ${"a=".repeat(many)}`,
  "separators in code": `python3 -c '${"a=b,c:".repeat(many / 3)}'`,
  "quotes in code": `python3 -c '${'"'.repeat(many)}'`,
  "quoted words": `python3 -c ${`'"' `.repeat(long(20_000))}`,
  options: `git ${list(long(6_000), (i) => `-c a.b${i}=c`)} log`,
  "moving options": `git ${"-C a ".repeat(long(10_000))}log`,
  wrappers: `${"xargs ".repeat(long(20_000))}ls`,
  words: `rm ${list(long(25_000), (i) => `f${i}`)}`,
  commands: list(long(5_000), (i) => `cp a${i} b${i}`, "; "),
  "nested texts": `${"bash -c '".repeat(200)}ls`,
  "unclear syntax": `curl ${"|".repeat(many)}`,
  "a pipeline without an end": "a|".repeat(20_000),
  "pipelines in groups": `${"a|".repeat(300)}{ `.repeat(40),
  "evaluated words": `eval ${"a ".repeat(long(10_000))}`,
  "globs over the file system": list(60, (i) => `cat /**/x${i}*`, "; "),
  "repeated directories": `grep -r x ${list(long(3_000), (i) => `/usr${"/".repeat((i % 9) + 1)}lib`)}`,
  "wildcards in a name": `cat ${"*a".repeat(120)}b`,
}

function longNameWorktree(): string {
  const worktree = temporaryDirectory()
  writeFileSync(join(worktree, "a".repeat(250)), "")
  return worktree
}

describe("hostile input", () => {
  describe.each([...(isComplete ? [["the defaults", {}] as const] : []), ["own rules", rules] as const])(
    "with %s",
    (_, user) => {
      test.each(Object.entries(slow))("judges a long text in bounded time: %s", async (_, text) => {
        const worktree = longNameWorktree()
        const request = { permission: "bash", patterns: [text] }
        const verdict = await harness().permission.check(request, scopeOf(policyOf(user), worktree))
        expect(["allow", "ask", "deny"]).toContain(verdict.action)
      })
    },
  )

  test.each(Object.entries(slow))(
    "names the programs of a long text in bounded time: %s",
    async (_, text) => {
      await knownPrograms(text, { cwd: longNameWorktree(), env: {} })
    },
  )

  test.each(["a|".repeat(20_000), `${"a|".repeat(20_000)}a`])(
    "asks for a text with too many pipes, and applies a deny to its commands",
    async (text) => {
      const judge = (patterns: string[]) =>
        harness().permission.check(
          { permission: "bash", patterns },
          scopeOf(policyOf(rules), temporaryDirectory()),
        )
      const { action, checks } = await judge([text])
      expect(action).toBe("ask")
      expect(checks[0]?.reason).toBe("it takes too long to analyze")
      expect((await judge([`rm x; ${text}`])).action).toBe("deny")
      expect((await judge([`bash -c 'rm x; ${text}'`])).action).toBe("deny")
    },
  )

  const hasPipes = spawnSync("mkfifo", ["--version"]).status === 0
  const files = [".git", ".gitignore", ".git/index", ".git/config", ".git/HEAD", ".git/commondir"]
  test.skipIf(!hasPipes).each([...files, ".git/info/exclude", ".env", ".git/objects/info/alternates"])(
    "does not wait for a pipe in place of %s (needs mkfifo)",
    async (name) => {
      const worktree = temporaryDirectory()
      if (name !== ".git") execFileSync("git", ["init", "-q"], { cwd: worktree })
      mkdirSync(dirname(join(worktree, name)), { recursive: true })
      rmSync(join(worktree, name), { recursive: true, force: true })
      execFileSync("mkfifo", [join(worktree, name)])

      const { permission } = harness()
      const judge = (text: string) =>
        permission.check({ permission: "bash", patterns: [text] }, scopeOf(policyOf({}), worktree))
      if (name.startsWith(".git/") && !name.includes("info/ex")) {
        expect((await judge("git status")).action).toBe("ask")
        expect((await judge("git diff")).action).toBe("ask")
      }
      await judge("rg x")
      await judge("grep -r x .")
    },
  )

  test.skipIf(!hasPipes)(
    "asks for a search that may read secrets because of an unknown ignore file",
    async () => {
      const worktree = temporaryDirectory()
      writeFileSync(join(worktree, ".env"), "KEY=1")
      const judge = () =>
        harness().permission.check(
          { permission: "bash", patterns: ["rg KEY"] },
          scopeOf(policyOf({}), worktree),
        )
      expect((await judge()).action).toBe("allow")
      execFileSync("mkfifo", [join(worktree, ".ignore")])
      expect((await judge()).action).toBe("ask")
    },
  )
})
