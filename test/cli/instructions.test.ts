import { mkdir, symlink, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { createMachine, type Machine } from "./run-tackle.ts"

/** The system prompt of the last request. */
function systemPrompt(machine: Machine): string {
  const messages = machine.server.requests.at(-1)?.body.messages ?? []
  return messages.flatMap(({ role, content }) => (role === "system" ? [String(content)] : [])).join("\n")
}

test("adds AGENTS.md or CLAUDE.md of the user and of each directory to the system prompt, nearest last", async () => {
  const machine = await createMachine({
    git: true,
    files: {
      "AGENTS.md": "root agents",
      "CLAUDE.md": "root claude",
      "a/CLAUDE.md": "claude of a",
      "a/b/.tackle/AGENTS.md": "tackle of b",
      "other/AGENTS.md": "of other",
    },
    script: [{ text: "Done." }],
  })
  for (const [path, text] of [
    [".claude/CLAUDE.md", "my claude"],
    ["config/opencode/AGENTS.md", "my opencode"],
    ["config/tackle/AGENTS.md", "my tackle"],
  ] as const) {
    await mkdir(dirname(join(machine.home, path)), { recursive: true })
    await writeFile(join(machine.home, path), text)
  }
  const ended = await machine.run(["run", "--dir", "a/b", "go"])
  expect(ended).toMatchObject({ code: 0, stderr: expect.not.stringContaining("trust") })
  const prompt = systemPrompt(machine)
  const inOrder = ["my claude", "my opencode", "my tackle", "root agents", "claude of a", "tackle of b"]
  const places = inOrder.map((text) => prompt.indexOf(`:\n${text}`))
  expect(places).not.toContain(-1)
  expect(places).toEqual([...places].sort((a, b) => a - b))
  expect(prompt).not.toMatch(/root claude|of other/)

  const { stdout } = await machine.run(["config", "show", "--format", "json", "--dir", "a/b"])
  expect(JSON.parse(stdout).instructions).toEqual([
    join(machine.home, ".claude/CLAUDE.md"),
    join(machine.home, "config/opencode/AGENTS.md"),
    join(machine.home, "config/tackle/AGENTS.md"),
    ...["AGENTS.md", "a/CLAUDE.md", "a/b/.tackle/AGENTS.md"].map((name) =>
      join(machine.project.directory, name),
    ),
  ])
  expect((await machine.run(["config", "show"])).stdout).toMatch(
    /Instructions for the model.*\n(.*\n)*.*AGENTS\.md/,
  )
})

test("cuts a long text at 64 KB with a note, and includes each text once", async () => {
  const machine = await createMachine({
    files: { "AGENTS.md": `start ${"x".repeat(70_000)} end` },
    config: { instructions: ["AGENTS.md"] },
    script: [{ text: "Done." }],
  })
  await machine.run(["run", "go"])
  const prompt = systemPrompt(machine)
  expect(prompt).toContain("Truncated to the first 65536 of 70010 bytes")
  expect(prompt.split("start x")).toHaveLength(2)
  expect(prompt).not.toContain("x end")
})

test("before trust, follows no link to a file outside the project or to a file without instructions", async () => {
  const machine = await createMachine({
    git: true,
    files: { ".env": "KEY=inside", "a/b/file.txt": "" },
    script: [{ text: "Done." }],
  })
  await writeFile(join(machine.home, "diary.md"), "dear diary")
  await symlink(join(machine.home, "diary.md"), join(machine.project.directory, "AGENTS.md"))
  await symlink("../.env", join(machine.project.directory, "a/AGENTS.md"))
  const { stderr } = await machine.run(["run", "--dir", "a/b", "go"])
  expect(stderr).toMatch(/AGENTS\.md is ignored, because .* is a link to a path outside the project/)
  expect(stderr).toMatch(/a\/AGENTS\.md is ignored, because .* is a link to \.env/)
  expect(systemPrompt(machine)).not.toMatch(/dear diary|KEY=inside/)
})

test("before trust, reads only Markdown and text files of the project, even if the user names others", async () => {
  const machine = await createMachine({
    git: true,
    files: { "rules.rst": "my rules", "rules.txt": "my text" },
    config: { instructions: ["rules.rst", "rules.txt"] },
    script: [{ text: "Done." }],
  })
  const { stderr } = await machine.run(["run", "go"])
  expect(stderr).toMatch(/rules\.rst is ignored, because .* this file is not a Markdown or text file\.\n/)
  expect(systemPrompt(machine)).toContain("my text")
  expect(systemPrompt(machine)).not.toContain("my rules")
})

const read = (filePath: string) => ({ name: "read", arguments: { filePath } })

test("adds the instructions of deeper directories to a read file, once per session", async () => {
  const machine = await createMachine({
    git: true,
    files: {
      "AGENTS.md": "root agents",
      "a/AGENTS.md": "of a",
      "a/b/CLAUDE.md": "of b",
      "a/b/one.txt": "1",
      "a/two.txt": "2",
      "named/AGENTS.md": "of named",
      "named/three.txt": "3",
      "tackle.json": '{"instructions": ["named/*.md"]}',
    },
    script: [
      { calls: [read("a/b/one.txt")] },
      { calls: [read("a/two.txt"), read("named/three.txt"), read("a/AGENTS.md")] },
      { text: "Done." },
      { calls: [read("a/b/one.txt")] },
      { text: "Done." },
    ],
  })
  expect(await machine.run(["run", "go"])).toMatchObject({ code: 0 })
  expect(await machine.run(["run", "-c", "again"])).toMatchObject({ code: 0 })
  const results = machine.server.requests
    .at(-1)
    ?.body.messages.filter(({ role }) => role === "tool")
    .map(({ content }) => String(content).split("<instructions>").slice(1).join(""))
  expect(results).toEqual([
    expect.stringMatching(
      /Instructions from a\/AGENTS\.md:\nof a\n[\s\S]*Instructions from a\/b\/CLAUDE\.md:\nof b/,
    ),
    ...["", "", "", ""],
  ])
})

test("sends no linked file of an untrusted project with a read file", async () => {
  const machine = await createMachine({
    git: true,
    files: { "tackle.json": "{}", "a/x.txt": "x", "b/y.txt": "y", "b/secret.json": "my secret" },
    script: [{ calls: [read("a/x.txt"), read("b/y.txt")] }, { text: "Done." }],
  })
  await writeFile(join(machine.home, "mine.md"), "my notes")
  await symlink(join(machine.home, "mine.md"), machine.project.path("a/AGENTS.md"))
  await symlink("secret.json", machine.project.path("b/AGENTS.md"))
  const run = await machine.run(["run", "go"])
  expect(run.stderr).toMatch(/a\/AGENTS\.md is ignored, because .* is a link to a path outside the project/)
  const sent = JSON.stringify(machine.server.requests.map(({ body }) => body))
  expect(sent).not.toMatch(/my notes|my secret/)
})

test("adds CLAUDE.local.md and the files that Claude Code's instructions import", async () => {
  const machine = await createMachine({
    git: true,
    files: {
      "CLAUDE.md":
        "shared; see @docs/style.md, @package.json and `@docs/code.md`\n```\n@docs/code.md\n```\n@types/node",
      "CLAUDE.local.md": "mine; @~/private.md @.env @../outside.md",
      "docs/style.md": "style rules, then @deep/more.md and @../CLAUDE.md",
      "docs/deep/more.md": "more rules",
      "docs/code.md": "not imported",
      "package.json": '{"name":"imported-package"}',
      ".env": "KEY=secret",
    },
    script: [{ text: "Done." }, { text: "Done." }],
  })
  await writeFile(join(machine.home, "private.md"), "private text")
  await mkdir(join(machine.home, ".claude"), { recursive: true })
  await writeFile(join(machine.home, ".claude/CLAUDE.md"), "of the user; @~/private.md")
  const untrusted = await machine.run(["run", "go"])
  expect(untrusted.stderr).toMatch(/@package\.json in .* is ignored, because the project is not trusted/)
  expect(systemPrompt(machine)).not.toContain("imported-package")

  const { stderr } = await machine.run(["run", "--trust", "go"])
  const prompt = systemPrompt(machine)
  for (const text of ["shared;", "style rules", "more rules", "imported-package", "mine;"])
    expect(prompt.split(text)).toHaveLength(2)
  expect(prompt).not.toMatch(/not imported|KEY=secret/)
  expect(prompt.indexOf("shared;")).toBeLessThan(prompt.indexOf("mine;"))
  // The user's own file may import it, the project's may not.
  expect(prompt.split("private text")).toHaveLength(2)
  expect(stderr).toMatch(
    /@~\/private\.md in .*CLAUDE\.local\.md is ignored, because the file is outside the project/,
  )
  expect(stderr).toMatch(/@\.env in .* is ignored, because the file may contain secrets/)
})
