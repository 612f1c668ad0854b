import { mkdir, writeFile } from "node:fs/promises"
import { expect, onTestFinished, test } from "vitest"
import type { TackleOptions } from "../../src/engine/options.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { listSkills } from "../../src/tools/skill.ts"
import { startEngine } from "../session/engine.ts"
import { resultsOf, run } from "../session/run.ts"

const text = (name: string) =>
  `---\nname: ${name}\ndescription: How to ${name}\n---\nFirst look at notes.txt.\n`

/** Skills of the user, outside any project. */
async function skills() {
  const home = await temporaryProject({
    "bake/SKILL.md": text("bake"),
    "bake/notes.txt": "butter\n",
    "bake/deep/more.txt": "salt\n",
    "bake/.env": "KEY=1\n",
    "brew/SKILL.md": text("brew"),
  })
  onTestFinished(() => home.remove())
  return { home, skillFiles: ["bake", "brew"].map((name) => home.path(name, "SKILL.md")) }
}

const call = (name: string, args: Record<string, string>) => ({ calls: [{ name, arguments: args }] })

async function offered(options: Partial<TackleOptions>, agent = "build") {
  await using engine = await startEngine([], options)
  return (await engine.tackle.tools({ agent })).find(({ id }) => id === "skill")
}

test("returns text, directory and files of a skill, which can be read without asking", async () => {
  const { home, skillFiles } = await skills()
  await using engine = await startEngine(
    [
      call("skill", { name: "bake" }),
      call("read", { filePath: home.path("bake/notes.txt") }),
      call("read", { filePath: home.path("bake/.env") }),
      call("write", { filePath: home.path("bake/new.txt"), content: "x" }),
      { text: "Done." },
    ],
    { skillFiles, permission: { edit: "allow" } },
  )
  const asked: string[] = []
  engine.tackle.on("permission.asked", (request) => {
    asked.push(request.permission)
    request.reply("reject")
  })
  const { session } = await run(engine)
  const [loaded, notes] = await resultsOf(session)
  expect(loaded).toBe(
    `Skill bake\nDirectory: ${home.path("bake")}\nFiles: .env, deep/more.txt, notes.txt\n\nFirst look at notes.txt.`,
  )
  expect(notes).toContain("butter")
  // Reading without asking does not include secrets and changes.
  expect(asked).toEqual(["read", "external_directory"])
})

test("lists the skills the agent may load; is offered only if there is one", async () => {
  const { skillFiles } = await skills()
  expect(await offered({})).toMatchObject({ offered: false, reason: expect.stringMatching(/no skills/) })
  const all = await offered({ skillFiles })
  expect(all).toMatchObject({ offered: true })
  expect(all?.description).toMatch(/- bake: How to bake\n- brew: How to brew$/)
  const some = await offered({ skillFiles, permission: { skill: { bake: "deny" } } })
  expect(some?.description).not.toContain("bake")
  expect(some?.description).toContain("brew")
  expect(await offered({ skillFiles, permission: { skill: "deny" } })).toMatchObject({ offered: false })
  expect(await offered({ skillFiles }, "explore")).toMatchObject({ offered: false })
})

test.each([
  ["bake", { skill: { bake: "deny" } }, /^Not allowed/],
  ["boil", {}, /^Unknown skill "boil"\. Available: bake, brew\.$/],
] as const)("%s under %o is an error", async (name, permission, message) => {
  const { skillFiles } = await skills()
  await using engine = await startEngine([], { skillFiles, permission })
  const { state } = await engine.tackle.callTool({ tool: "skill", input: JSON.stringify({ name }) })
  expect(state).toMatchObject({ status: "error", error: expect.stringMatching(message) })
})

test.each([
  ["more than 50 files", 51, "file-", ", and more"],
  ["50 files", 50, "file-", ""],
  ["more than 1,000 entries", 1_001, "dir/", ", and more"],
])("says whether the list of the files of a skill with %s is complete", async (_, count, kind, end) => {
  const home = await temporaryProject({ "bake/SKILL.md": text("bake"), "bake/a.txt": "" })
  onTestFinished(() => home.remove())
  for (let index = kind === "dir/" ? 0 : 1; index < count; index += 1)
    if (kind === "dir/") await mkdir(home.path("bake", `d${index}`))
    else await writeFile(home.path("bake", `${kind}${index}`), "")
  await using engine = await startEngine([], { skillFiles: [home.path("bake/SKILL.md")] })
  const { state } = await engine.tackle.callTool({ tool: "skill", input: { name: "bake" } })
  const files = /^Files: .*$/m.exec(state.status === "completed" ? state.output : "")?.[0]
  expect(files).toMatch(end === "" ? /[^e]$/ : /, and more$/)
})

test("limits the list and reports how many skills are left out", () => {
  const many = Array.from({ length: 500 }, (_, index) => ({
    name: `skill-${index}`,
    description: "x".repeat(1000),
    directory: "/",
    body: "",
  }))
  const list = listSkills(many)
  expect(list.length).toBeLessThan(8_200)
  const lines = list.split("\n")
  expect(lines[0]).toBe(`- skill-0: ${"x".repeat(299)}…`)
  expect(lines.at(-2)).toMatch(/^- skill-\d+$/)
  expect(lines.at(-1)).toBe(`- and ${500 - (lines.length - 1)} more. Load one of them if the user names it.`)
})
