import { symlink } from "node:fs/promises"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { findMentions, missingMentions } from "../../src/session/mentions.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"
import { startEngine } from "./engine.ts"
import { run } from "./run.ts"

const files = {
  "src/a.ts": "export const a = 1\n",
  "notes v2.txt": "seven\n",
  "b.md": "# B\n",
  "trailing.": "dot\n",
  explore: "a file\n",
}

describe("findMentions", () => {
  let project: TemporaryProject
  beforeAll(async () => {
    project = await temporaryProject(files)
  })
  afterAll(() => project.remove())

  const find = (text: string) => {
    const place = {
      directory: project.directory,
      worktree: project.directory,
      agents: ["explore", "general"],
      servers: ["docs", "my server"],
    }
    return findMentions(text, place).map(({ kind, name }) => `${kind} ${name}`)
  }

  test.each<[string, string[]]>([
    ["look at @src/a.ts and @src", ["file src/a.ts", "directory src"]],
    ["@b.md, (@src/a.ts) and '@src/'.", ["file b.md", "file src/a.ts", "directory src/"]],
    ["is @src/a.ts:12-20 right?", ["file src/a.ts"]],
    ['see @"notes v2.txt"!', ["file notes v2.txt"]],
    ["@trailing. and @b.md.", ["file trailing.", "file b.md"]],
    ["@general look; @explore is a file here", ["agent general", "file explore"]],
    ["@b.md @./b.md @src/../b.md", ["file src/../b.md"]],
    ["@./ and @.", ["directory ./"]],
    ["me@b.md, a@src, @none, @..., @@b.md, @ b.md, @/etc/passwd, @../, @~", []],
    ["`@b.md`", ["file b.md"]],
    [
      "read @docs:demo://a/b.txt:12, (@docs:urn:x)",
      ["resource docs:demo://a/b.txt:12", "resource docs:urn:x"],
    ],
    ['@"my server:demo://a b"', ["resource my server:demo://a b"]],
    ["@none:demo://a @docs:plain @docs:", []],
  ])("%s", (text, expected) => {
    expect(find(text)).toEqual(expected)
  })

  test.each<[string, string[]]>([
    [
      "look at @src/aa.ts, @scr/a.ts and @a.ts.",
      ["src/aa.ts: src/a.ts", "scr/a.ts: src/a.ts", "a.ts: src/a.ts"],
    ],
    ["@src/none and @./none:12", ["src/none: ", "./none: "]],
    ["see @plan.md", ["plan.md: "]],
    ['(@"notes v3.txt")', ["notes v3.txt: notes v2.txt"]],
    ["@../ and @/etc/passwd", ["/etc/passwd: outside"]],
    ["@src/a.ts me@b.mdx a@src.ts @decorator @app.route @john.doe @explore, @general", []],
    [
      "@scope/pkg @angular/core @hapi/joi.ts @types/node@22 @app.get('/x') @docs:demo://a.md @none @... @@b.ts",
      [],
    ],
  ])("is missing: %s", async (text, expected) => {
    const place = {
      directory: project.directory,
      worktree: project.directory,
      agents: ["explore", "general"],
      servers: [],
    }
    const found = await missingMentions(text, place, new AbortController().signal)
    expect(
      found.map(({ name, outside, near }) => `${name}: ${outside ? "outside" : near.join(" ")}`),
    ).toEqual(expected)
  })

  test("finds at most twenty mentions", async () => {
    const names = Array.from({ length: 30 }, (_, index) => `many/${index}.txt`)
    await Promise.all(names.map((name) => project.write(name, "")))
    expect(find(names.map((name) => `@${name}`).join(" "))).toHaveLength(20)
  })

  test("terminates for any text and finds nothing outside the worktree", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^(@?[a-z./~:"' ]{0,6}){0,8}$/), (text) => {
        const place = { directory: project.directory, worktree: project.directory, agents: [], servers: [] }
        for (const mention of findMentions(text, place))
          expect("path" in mention && mention.path.startsWith(project.directory)).toBe(true)
      }),
    )
  })
})

/** Returns the texts of the user's message as the model gets them. */
function textsOf(engine: {
  server: { requests: { body: { messages: { content?: unknown }[] } }[] }
}): string[] {
  const content = engine.server.requests[0]?.body.messages.at(-1)?.content
  return Array.isArray(content) ? content.map(({ text }) => String(text)) : [String(content)]
}

test("attaches what read and list return, and counts it as read", async () => {
  await using engine = await startEngine(
    [
      { calls: [{ name: "edit", arguments: { filePath: "b.md", oldString: "# B", newString: "# C" } }] },
      { text: "Done." },
    ],
    { files, permission: { edit: "allow" } },
  )
  const { end } = await run(engine, { text: "compare @b.md with @src" })
  const [text, file, directory, ...rest] = textsOf(engine)
  expect(text).toBe("compare @b.md with @src")
  expect(file).toMatch(/^<file path=".*b\.md">\n {4}1→# B/)
  expect(directory).toMatch(/^<directory path=".*src">\n[\s\S]*a\.ts/)
  expect(rest).toEqual([])
  expect(await engine.project.read("b.md")).toBe("# C\n")
  expect(end).toMatchObject({ status: "completed", exitCode: 0 })
})

test("turns a refusal into a note for the model, and reports it at the end", async () => {
  await using engine = await startEngine([{ text: "Done." }], {
    files: { ...files, ".env": "KEY=1\n" },
    permission: { read: { "src/*": "deny" } },
  })
  await symlink("/etc/hostname", engine.project.path("outside"))
  const asked: string[] = []
  engine.tackle.on("permission.asked", (request) => {
    asked.push(request.permission)
    void request.reply("reject")
  })
  const { end, session } = await run(engine, { text: "look at @src/a.ts, @.env and @outside" })
  const [, ...notes] = textsOf(engine)
  expect(notes).toMatchObject([
    expect.stringMatching(/^@src\/a\.ts was not attached: .*denied by a rule/),
    expect.stringMatching(/^@\.env was not attached: The user refused/),
    expect.stringMatching(/^@outside was not attached: The user refused/),
  ])
  expect(asked.sort()).toEqual(["external_directory", "read"])
  expect(end).toMatchObject({ status: "completed", exitCode: 3 })
  expect(end.refused).toHaveLength(3)
  const parts = (await session.messages())[0]?.parts
  expect(parts?.map((part) => part.type === "text" && part.synthetic)).toEqual([undefined, true, true, true])
})

test("turns a named subagent into a hint to use task, unless it cannot be started", async () => {
  await using engine = await startEngine([{ text: "Done." }])
  await run(engine, { text: "let @explore look, not @build or @nothere" })
  expect(textsOf(engine).slice(1)).toEqual([expect.stringContaining("subagent explore (@explore)")])
})
