import { expect, test } from "vitest"
import { callsOf } from "../cli/run-tackle.ts"
import { openExample, promptOf } from "./open-example.ts"

test("offers both skills only after they are trusted", async () => {
  const machine = await openExample("skills", { trusted: false })
  const skill = async () => {
    const { stdout } = await machine.run(["tool", "list", "--format", "json"])
    return JSON.parse(stdout).tools.find(({ id }: { id: string }) => id === "skill")?.description
  }
  expect(await skill()).toBeUndefined()
  await machine.trust()
  expect(await skill()).toMatch(/- commit-message: How commit messages.*\n- release-notes: How the notes/)
})

test("/release-notes sends the text to the model, and its script runs in the directory of the skill", async () => {
  const machine = await openExample("skills", {
    script: [
      {
        calls: [
          {
            name: "bash",
            arguments: {
              command: ".tackle/skills/release-notes/scripts/changes.sh CHANGES.md",
              description: "d",
            },
          },
        ],
      },
      { text: "Noted." },
    ],
  })
  const run = await machine.run(["run", "/release-notes 1.2.0", "--allow", "bash"])
  expect(run).toMatchObject({ code: 0, stdout: expect.stringContaining("Noted.") })
  expect(promptOf(machine, 0)).toContain("Sort it into Added, Changed and Fixed")
  expect(promptOf(machine, 0)).toContain("1.2.0")
  expect(promptOf(machine, 1)).toContain("- Carts may be empty.\\n- Tax is rounded")
  expect(promptOf(machine, 1)).not.toContain("- Discounts")
})

test("loads a skill of another program like one of Tackle", async () => {
  const machine = await openExample("skills", {
    script: [{ calls: [{ name: "skill", arguments: { name: "commit-message" } }] }, { text: "Done." }],
  })
  const run = await machine.run(["run", "--format", "json", "write the message for what is staged"])
  expect(callsOf(run).map(([tool, status]) => `${tool} ${status}`)).toEqual(["skill completed"])
  expect(promptOf(machine, 1)).toContain("at most 72 characters")
})
