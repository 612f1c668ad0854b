import { execFileSync } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { PermissionConfig } from "../../src/permission/rules.ts"
import { temporaryDirectory, verdictOf } from "./support.ts"

const commands: string[] = Object.values(
  JSON.parse(readFileSync(new URL("../corpus/typical-commands.json", import.meta.url), "utf8")) as Record<
    string,
    string[]
  >,
).flat()

/** Rules that a user adds during the first day. */
const sensible: PermissionConfig = {
  edit: "allow",
  external_directory: { "/tmp/*": "allow" },
  bash: Object.fromEntries(
    [
      "npm test *",
      "npm run *",
      "npm ls *",
      "npm --version",
      "ps aux",
      "touch *",
      "cp *",
      "mv *",
      "npx tsc *",
      "npx vitest *",
      "npx eslint *",
      "npx prettier *",
      "node scripts/*",
      "git add *",
      "git commit *",
      "git stash *",
      "git checkout *",
      "pytest *",
      "python3 -m pytest *",
      "python3 -m app.main *",
      "source .venv/bin/activate",
      "uv run pytest *",
      "ruff *",
      "mypy *",
      "cargo *",
      "go *",
      "gofmt *",
      "export PYTHONPATH=*",
      "pip list",
      "make *",
      "mkdir *",
      "curl *",
    ].map((pattern) => [pattern, "allow" as const]),
  ),
}

function project(): string {
  const directory = temporaryDirectory()
  for (const folder of [
    "src/util",
    "scripts",
    "tests",
    "app",
    "cmd/app",
    "internal/auth",
    "node_modules",
    ".venv/bin",
  ])
    mkdirSync(join(directory, folder), { recursive: true })
  const files = [
    ".env",
    "package.json",
    "README.md",
    "src/index.ts",
    "src/a.ts",
    "src/b.ts",
    "src/server.test.ts",
  ]
  for (const file of [...files, "requirements.txt", "data.csv", "server.log", "Cargo.toml", "Makefile"])
    writeFileSync(join(directory, file), "x\n")
  writeFileSync(join(directory, ".gitignore"), ".env\nnode_modules\n.venv\n")
  const git = (...args: string[]) => execFileSync("git", args, { cwd: directory, stdio: "ignore" })
  git("init", "-q")
  git("add", "-A")
  git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x")
  return directory
}

describe("typical commands", () => {
  it.each([
    ["without rules", {}, 55],
    ["with the rules of a first day", sensible, 8],
  ] as const)("%s, few of them ask", async (_, rules, limit) => {
    const worktree = project()
    const asking: string[] = []
    for (const command of commands)
      if ((await verdictOf(rules, "bash", command, { worktree })).action !== "allow") asking.push(command)
    expect(asking.length, asking.join("\n")).toBeLessThanOrEqual((limit * commands.length) / 100)
  })
})
