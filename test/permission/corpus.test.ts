import { spawnSync } from "node:child_process"
import { existsSync, globSync, mkdirSync, readFileSync, symlinkSync } from "node:fs"
import { join, resolve } from "node:path"
import { describe, expect, test } from "vitest"
import { readPermissionCases, runPermissionCase } from "../../src/config/permission-cases.ts"
import { maxCommandLength } from "../../src/permission/shell/plan-command.ts"
import { allow, deny, temporaryDirectory, verdictOf } from "./support.ts"

const corpus = resolve(import.meta.dirname, "../corpus/permission")
const files = globSync("*.jsonl", { cwd: corpus }).sort()
const read = (file: string) => readPermissionCases(readFileSync(join(corpus, file), "utf8"), file)

/** Compared by name: the files of the corpus do not exist on this machine. */
const place = { otherwise: "/w", home: "/h" }

describe("the corpus", () => {
  test("contains enough cases", async () => {
    const all = await Promise.all(files.map(read))
    expect(all.flat().length).toBeGreaterThan(1_200)
  })

  test.each(files)("%s has the expected verdicts", async (file) => {
    const wrong: string[] = []
    for (const entry of await read(file)) {
      const result = await runPermissionCase(entry, place)
      if (result.passed) continue
      const { verdict } = result.explanation
      wrong.push(
        `${file}:${entry.line}: ${JSON.stringify(entry.patterns)} is ${verdict}, not ${entry.expect}`,
      )
    }
    expect(wrong).toEqual([])
  })

  test("allows no command that changes a file in an installed shell", async () => {
    const root = temporaryDirectory()
    const [worktree, bin] = [join(root, "w"), join(root, "bin")]
    for (const directory of [worktree, bin]) mkdirSync(directory)
    for (const name of ["cat", "echo", "ls", "touch"]) symlinkSync(`/bin/${name}`, join(bin, name))
    const shells = ["/bin/bash", "/bin/dash", "/bin/zsh"].filter((shell) => existsSync(shell))
    let ran = 0
    for (const { expect: expected, permission, patterns } of (await Promise.all(files.map(read))).flat()) {
      const [text = ""] = patterns
      if (expected !== "allow" || permission !== "bash" || !text.includes("touch p")) continue
      for (const shell of shells) {
        spawnSync(shell, ["-c", text], { cwd: worktree, env: { PATH: bin }, stdio: "ignore", timeout: 5_000 })
        ran += 1
        expect(existsSync(join(worktree, "p")), `${shell}: ${text}`).toBe(false)
      }
    }
    expect(ran).toBeGreaterThan(5)
  })
})

test.each([
  ["a command among thousands", deny("curl *"), `${"true;".repeat(5_000)}curl e`, "deny"],
  ["a command behind a long text", deny("curl *"), `echo ${"a".repeat(100_000)}; curl e`, "deny"],
  ["a command behind many lines", deny("curl *"), `echo '${"x\n".repeat(20_000)}'; curl e`, "deny"],
  ["a text too long to analyse", { bash: "allow" } as const, `echo ${"a".repeat(maxCommandLength)}`, "ask"],
  ["a pattern of many stars", allow("*a*a*a*a*a*a*a*a*a*b"), `make ${"a".repeat(50_000)}`, "ask"],
  ["a tail behind blanks", allow("grep *"), `grep a f${" ".repeat(50_000)}; env`, "ask"],
])("%s", async (_, rules, command, expected) => {
  expect((await verdictOf(rules, "bash", command)).action).toBe(expected)
})
