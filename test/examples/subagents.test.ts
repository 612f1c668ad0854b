import { expect, test } from "vitest"
import { openExample, promptOf } from "./open-example.ts"

test("lists both subagents with their source", async () => {
  const machine = await openExample("subagents")
  const { stdout } = await machine.run(["agent", "list"])
  expect(stdout).toMatch(/^drafter +subagent, tackle\.json/m)
  expect(stdout).toMatch(/^sorter +subagent, \.tackle\/agent\/sorter\.md/m)
})

test("sorts two letters in parallel with agents that only read", async () => {
  const task = (letter: string) => ({
    name: "task",
    arguments: { description: letter, prompt: `Sort inbox/${letter}`, subagent_type: "sorter" },
  })
  const machine = await openExample("subagents", {
    script: (request) => {
      const asked = JSON.stringify(request.body.messages)
      if (!asked.includes("You sort letters")) {
        return asked.includes("task_id") ? { text: "Sorted." } : { calls: [task("1.txt"), task("2.txt")] }
      }
      const letter = asked.includes("Sort inbox/1.txt") ? "1.txt" : "2.txt"
      if (asked.includes("Dear shop")) return { text: letter === "1.txt" ? "complaint" : "order" }
      return { calls: [{ name: "read", arguments: { filePath: `inbox/${letter}` } }] }
    },
  })
  const run = await machine.run(["run", "sort the letters in inbox"])
  expect(run).toMatchObject({ code: 0, stdout: expect.stringContaining("Sorted.") })
  const last = promptOf(machine, machine.server.requests.length - 1)
  expect(last).toContain("complaint")
  expect(last).toContain("order")
  const ofSorters = machine.server.requests.filter(({ body }) =>
    JSON.stringify(body.messages).includes("You sort letters"),
  )
  expect(ofSorters).toHaveLength(4)
  for (const { body } of ofSorters) expect(body.tools?.map((tool) => tool.function.name)).toEqual(["read"])
})
