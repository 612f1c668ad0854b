import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { expect, test } from "vitest"
import { harness, policyOf, scopeOf, temporaryDirectory } from "../support.ts"

const secret = "ThisIsTheSecret"

/** Creates a project in which many names lead to a secret. */
function project(): string {
  const worktree = temporaryDirectory()
  const links = ["src/link.ts", "odd/x.md"]
  for (const folder of ["src", "odd", "a .env", "src/-n", "none"]) mkdirSync(join(worktree, folder))
  for (const file of [
    "README.md",
    "src/a.ts",
    "src/b.ts",
    "odd/a .env b.ts",
    "odd/-r",
    "odd/*.md",
    "list.txt",
  ])
    writeFileSync(join(worktree, file), `.env\n${file}\n`)
  for (const file of [".env", "src/.env", "odd/.env.local"])
    writeFileSync(join(worktree, file), `${secret}\n`)
  for (const link of links) symlinkSync("../.env", join(worktree, link))
  return worktree
}

const one = (...texts: string[]) => fc.constantFrom(...texts)
const all = (...parts: fc.Arbitrary<string>[]) => fc.tuple(...parts).map((texts) => texts.join(""))

const values = fc
  .array(
    one(
      ...[
        "README.md",
        ".env",
        "src/*.ts",
        "src/*",
        "odd/*",
        "*/a*",
        "odd/*.md",
        "'.e*'",
        "'a .env'",
        '"src/b.ts"',
      ],
      ...[
        "=cat",
        "~",
        "{a,.env}",
        "$HOME",
        ".en",
        "src",
        "-r",
        "{1..3}",
        "$(seq 2)",
        "$(cat list.txt)",
        "''",
      ],
    ),
    { minLength: 1, maxLength: 3 },
  )
  .map((words) => words.join(" "))

const variable = one(
  '"$f"',
  "$f",
  `"\${f}"`,
  `\${f}v`,
  '"$f[1,4]"',
  '"$f:h"',
  "$f/*",
  "./$f",
  '"$f"/.env',
  "$f.env",
)
const reader = one(
  "cat",
  "head -3",
  "grep -rn This",
  "wc -c",
  "sed -n 1,3p",
  "sort",
  "tail -n +1",
  "grep -h .",
  "ls",
)
const change = one(
  "",
  "",
  "",
  "f=.env; ",
  "read -r f < list.txt; ",
  "read f <<< .env; ",
  "printf -v f .env; ",
  "cd src; ",
)
const loop = all(
  one("for f in "),
  values,
  one("; do "),
  change,
  reader,
  one(" "),
  variable,
  one("; done", " | cat; done"),
)

const test_ = one(
  "-name '*.ts'",
  "-name '*'",
  "! -name '*.env'",
  "-iname '.ENV'",
  "-type f",
  "-name '?env'",
  "-true",
  "-name 'a*'",
)
const source = fc.oneof(
  all(
    one("find ", "find -L "),
    one(".", "src", "odd", "README.md", "src odd", "none"),
    one(" "),
    test_,
    one(" ", " -o ", " -not "),
    test_,
    one("", " -print", " -print0", " -printf '.env\\n'", " -prune -o -print"),
  ),
  all(
    one("grep -rl ", "grep -l ", "grep -rn ", "rg -l ", "rg --files "),
    one("md ", "a "),
    one("src", "odd", "README.md", "."),
  ),
  one("echo .env", "cat list.txt", "ls -a", "git ls-files"),
)
const filter = one(
  "",
  "",
  " | sort",
  " | head -2",
  " | grep -v md",
  " | grep -o '.env'",
  " | sed s/ts/env/",
  " 2>&1",
)
const taker = all(
  one("xargs ", "xargs -0 ", "xargs -n1 ", "xargs -I{} ", "xargs -d '\\n' "),
  reader,
  one("", " {}", " x{}", " .env"),
)
const pipeline = all(source, filter, one(" | ", " |& "), taker)

test("allows no loop and no list of files that prints a secret, in any installed shell", {
  timeout: 120_000,
}, async () => {
  const worktree = project()
  const shells = ["/bin/bash", "/bin/dash", "/bin/zsh"].filter((shell) => existsSync(shell))
  const { permission } = harness()
  const environment = { PATH: process.env.PATH, HOME: worktree }
  let ran = 0
  await fc.assert(
    fc.asyncProperty(fc.oneof(loop, pipeline), async (text) => {
      const { action } = await permission.check(
        { permission: "bash", patterns: [text] },
        scopeOf(policyOf({}), worktree),
      )
      if (action !== "allow") return
      for (const shell of shells) {
        const { stdout } = spawnSync(shell, ["-c", text], { cwd: worktree, env: environment, timeout: 5_000 })
        expect(stdout.toString(), shell).not.toContain(secret)
        ran += 1
      }
    }),
    { numRuns: Number(process.env.RUNS ?? 600) },
  )
  expect(ran).toBeGreaterThan(10)
})
