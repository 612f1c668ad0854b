import { expect, test } from "vitest"
import { createMachine, runDoctor } from "./run-tackle.ts"

const skill = (name: string, words = name) => `---\nname: ${name}\ndescription: ${words}\n---\nDo it.\n`

test("reads skills from the folders of other agents, and those of the project once their content is trusted", async () => {
  const machine = await createMachine({
    git: true,
    files: {
      ".claude/skills/a/SKILL.md": skill("a", "Claude's"),
      ".agents/skills/a/SKILL.md": skill("a", "of .agents"),
      ".opencode/skill/a/SKILL.md": skill("a", "OpenCode's"),
      ".tackle/skills/a/SKILL.md": skill("a", "Tackle's"),
      "sub/.claude/skills/b/SKILL.md": skill("b"),
      "sub/.claude/skills/b/run.sh": "echo one\n",
    },
  })
  const { writeFile, mkdir } = await import("node:fs/promises")
  const own = async (place: string, name: string) => {
    await mkdir(`${machine.home}/${place}/${name}`, { recursive: true })
    await writeFile(`${machine.home}/${place}/${name}/SKILL.md`, skill(name, `my ${name}`))
  }
  await own(".claude/skills", "a")
  await own(".agents/skills", "mine")
  await own("config/opencode/skills", "yours")
  const listed = async (...flags: string[]) => {
    const { stdout, stderr } = await machine.run([
      "tool",
      "list",
      "--all",
      "--format",
      "json",
      "--dir",
      "sub",
      ...flags,
    ])
    const { description } = JSON.parse(stdout).tools.find(({ id }: { id: string }) => id === "skill")
    return { list: description.split("Skills:\n")[1], stderr }
  }
  const untrusted = await listed()
  expect(untrusted.list).toBe("- a: my a\n- mine: my mine\n- yours: my yours")
  expect(untrusted.stderr).toMatch(/not trusted.*sub\/\.claude\/skills\/b\/SKILL\.md/)

  await machine.run(["trust", "--yes", "--dir", "sub"])
  const trusted = await listed()
  expect(trusted.list).toBe("- a: Tackle's\n- b: b\n- mine: my mine\n- yours: my yours")
  expect(trusted.stderr).toBe("")
  const shown = await machine.run(["config", "show", "--dir", "sub"])
  const skills = shown.stdout.split("\n").filter((line) => line.includes("SKILL.md"))
  expect(skills).toHaveLength(8)
  expect(skills[0]).toMatch(
    /\.claude\/skills\/a\/SKILL\.md \(a, ignored, because a later skill has the same name\)$/,
  )
  expect(skills.filter((line) => line.endsWith("(a)"))).toEqual([
    expect.stringContaining(".tackle/skills/a/SKILL.md"),
  ])

  // The scripts of a skill need trust like its text.
  await machine.project.write("sub/.claude/skills/b/run.sh", "echo two\n")
  expect((await listed()).list).toBe("- a: Tackle's\n- mine: my mine\n- yours: my yours")
  expect((await listed("--trust")).list).toContain("- b: b")
})

test("reports an unusable skill in doctor, and runs without it", async () => {
  const machine = await createMachine({
    files: {
      ".tackle/skills/bad/SKILL.md": "no front matter",
      ".tackle/skills/good/SKILL.md": skill("good"),
    },
    script: [{ text: "Done." }],
  })
  const [doctor, run] = await Promise.all([
    runDoctor(machine, "--trust", "--format", "json"),
    machine.run(["run", "--trust", "go"]),
  ])
  const { findings } = JSON.parse(doctor.stdout)
  expect(findings).toContainEqual({
    check: "skills",
    status: "warn",
    detail: expect.stringMatching(/bad\/SKILL\.md: it does not start with front matter/),
  })
  expect(run).toMatchObject({ code: 0, stdout: "Done.\n" })
  const tool = machine.server.requests[0]?.body.tools?.find((each) => each.function.name === "skill")
  expect(tool?.function.description).toMatch(/Skills:\n- good: good$/)
})
