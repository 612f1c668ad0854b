import { expect, test } from "vitest"
import { createMachine } from "./run-tackle.ts"

test("lists old sessions, then deletes them and keeps the newest", async () => {
  const machine = await createMachine({ script: [{ text: "One." }, { text: "Two." }, { text: "Three." }] })
  for (const text of ["first", "second", "third"]) await machine.run(["run", text])

  const unsure = await machine.run(["session", "prune"])
  expect(unsure).toMatchObject({ code: 2, stdout: "" })
  expect(unsure.stderr).toContain("--older-than 30d, --keep 20, or both")
  const wrong = await machine.run(["session", "prune", "--older-than", "30"])
  expect(wrong.code).toBe(2)
  expect(wrong.stderr).toContain("12h, 30d or 6w")

  const shown = await machine.run(["session", "prune", "--keep", "1", "--dry-run"])
  expect(shown.stdout).toMatch(/^ses_\w+ .* first\nses_\w+ .* second\nWould delete 2 sessions\.\n$/)
  const titles = async () => {
    const { stdout } = await machine.run(["session", "list", "--format", "json"])
    return JSON.parse(stdout).sessions.map(({ title }: { title: string }) => title)
  }
  expect(await titles()).toEqual(["third", "second", "first"])

  const young = await machine.run(["session", "prune", "--keep", "1", "--older-than", "1d"])
  expect(young.stdout).toBe("Deleted 0 sessions.\n")
  const pruned = await machine.run(["session", "prune", "--keep", "2", "--format", "json"])
  expect(JSON.parse(pruned.stdout)).toMatchObject({ dryRun: false, deleted: [{ title: "first" }], held: [] })
  expect(await titles()).toEqual(["third", "second"])
})
