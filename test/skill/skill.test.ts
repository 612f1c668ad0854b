import { createHash } from "node:crypto"
import { readFileSync, symlinkSync } from "node:fs"
import { expect, onTestFinished, test } from "vitest"
import { findSkillFiles, loadSkills } from "../../src/skill/skill.ts"
import { temporaryProject } from "../../src/testing/project.ts"

async function project(files: Record<string, string>) {
  const made = await temporaryProject(files)
  onTestFinished(() => made.remove())
  return made
}

const skill = (name: string, description = `About ${name}`) =>
  `---\nname: ${name}\ndescription: ${description}\n---\n\nDo ${name}.\n`

test("finds skills by root and name, in groups and behind links, but not inside skills", async () => {
  const { path, write } = await project({
    "one/b/SKILL.md": skill("b"),
    "one/a/SKILL.md": skill("a"),
    "one/a/deeper/SKILL.md": skill("deeper"),
    "one/group/c/SKILL.md": skill("c"),
    "one/node_modules/d/SKILL.md": skill("d"),
    "one/SKILL.md": skill("loose"),
    "one/e/skill.txt": "",
    "elsewhere/f/SKILL.md": skill("f"),
  })
  await write("two", "a file")
  symlinkSync(path("elsewhere/f"), path("one/linked"))
  symlinkSync(path("one/round"), path("one/round"))
  const found = findSkillFiles([path("none"), path("two"), path("two/below"), path("one")])
  expect(found).toEqual(["one/a", "one/b", "one/group/c", "one/linked"].map((name) => path(name, "SKILL.md")))
})

test("reads skills; a later one replaces one with the same name", async () => {
  const { path } = await project({
    "low/x/SKILL.md": skill("x", "low"),
    "high/x/SKILL.md":
      "\uFEFF---\r\nname: x\r\ndescription: >\r\n  high\r\n  and wide\r\nallowed-tools: Bash(*)\r\n---\r\nDo it.\r\n",
    "high/unnamed/SKILL.md": "---\ndescription: No name\n---",
  })
  const files = ["low/x", "high/x", "high/unnamed"].map((name) => path(name, "SKILL.md"))
  const { skills, problems } = await loadSkills(files)
  expect(problems).toEqual([])
  expect([...skills.values()]).toEqual([
    { name: "unnamed", description: "No name", directory: path("high/unnamed"), body: "" },
    { name: "x", description: "high and wide", directory: path("high/x"), body: "Do it." },
  ])
})

test.each([
  ["no front matter", "Do it.\n", /does not start with front matter/],
  ["an open front matter", "---\nname: x\n", /does not start with front matter/],
  ["no description", "---\nname: x\n---\n", /description must be text/],
  [
    "an empty description",
    '---\nname: x\ndescription: " "\n---\n',
    /^description must be text that describes the skill$/,
  ],
  ["a name that is not a text", "---\nname: [x]\ndescription: d\n---\n", /^name must be text$/],
  [
    "a name with a wildcard",
    '---\nname: "*"\ndescription: d\n---\n',
    /name must be 1 to 64.* and must begin with a letter or digit$/,
  ],
  ["a name with a path", "---\nname: ../x\ndescription: d\n---\n", /name must be 1 to 64/],
  ["a list", "---\n- x\n---\n", /not a mapping/],
  ["an invalid name in invalid YAML", "---\nname: {x\n---\n", /name must be 1 to 64/],
  ["invalid YAML", "---\n{x\n---\n", /line 1|flow/i],
  ["nested aliases", `---\na: &a [x, x]\n${bomb(12)}description: *l12\n---\n`, /alias/i],
  ["a file that is too large", `---\n${"x".repeat(600_000)}\n---\n`, /600\d+ bytes/],
])("reports %s without affecting other skills", async (_, text, message) => {
  const { path } = await project({ "bad/SKILL.md": text, "good/SKILL.md": skill("good") })
  const { skills, problems } = await loadSkills([
    path("bad/SKILL.md"),
    path("gone/SKILL.md"),
    path("good/SKILL.md"),
  ])
  expect([...skills.keys()]).toEqual(["good"])
  expect(problems).toEqual([
    { file: path("bad/SKILL.md"), message: expect.stringMatching(message) },
    { file: path("gone/SKILL.md"), message: expect.stringMatching(/ENOENT/) },
  ])
})

test.each([
  ["Use whenever: always", "Use whenever: always"],
  ["Reads `a: b`, then: writes", "Reads `a: b`, then: writes"],
  ["`code` first", "`code` first"],
  ["@mention first", "@mention first"],
  ["[draft] For notes", "[draft] For notes"],
  ["{x} For notes", "{x} For notes"],
  ["* For notes", "* For notes"],
  ["% For notes", "% For notes"],
  ['"Quoted" and more', '"Quoted" and more'],
  ["'Quoted: one", "'Quoted: one"],
  ["Tab:\tand: more", "Tab: and: more"],
  ["First: one\n  second: two", "First: one second: two"],
])("reads the description %j as agents' descriptions are read", async (written, read) => {
  const { path } = await project({ "x/SKILL.md": skill("x", written) })
  const { skills, problems } = await loadSkills([path("x/SKILL.md")])
  expect(problems).toEqual([])
  expect(skills.get("x")?.description).toBe(read)
})

test("reports a directory name that cannot be the name of the skill", async () => {
  const { path } = await project({ "my skill/SKILL.md": "---\ndescription: No name\n---" })
  const { problems } = await loadSkills([path("my skill/SKILL.md")])
  expect(problems).toEqual([
    {
      file: path("my skill/SKILL.md"),
      message: expect.stringMatching(
        /^the name of its directory, which is used because the field name is missing, must be 1 to 64/,
      ),
    },
  ])
})

test("loads a pinned skill only with the trusted text", async () => {
  const { path, write } = await project({ "x/SKILL.md": skill("x"), "y/SKILL.md": skill("y") })
  const files = ["x/SKILL.md", "y/SKILL.md"].map((name) => path(name))
  const hashed = files.map(
    (file) => [file, createHash("sha256").update(readFileSync(file)).digest("hex")] as const,
  )
  const pinned = new Map(hashed)
  const load = () => loadSkills(files.map((file) => ({ path: file, pinned })))
  expect((await load()).problems).toEqual([])
  await write("x/SKILL.md", skill("x", "Something else"))
  expect(await load()).toMatchObject({
    skills: new Map([["y", expect.anything()]]),
    problems: [
      { file: path("x/SKILL.md"), message: expect.stringMatching(/has changed since it was trusted/) },
    ],
  })
  expect((await loadSkills([{ path: path("y/SKILL.md"), pinned: new Map() }])).problems).toHaveLength(1)
})

/** Each line repeats the one before ten times. */
function bomb(levels: number): string {
  const line = (level: number) =>
    `l${level}: &l${level} [${Array(10)
      .fill(level === 1 ? "*a" : `*l${level - 1}`)
      .join(", ")}]\n`
  return Array.from({ length: levels }, (_, index) => line(index + 1)).join("")
}
