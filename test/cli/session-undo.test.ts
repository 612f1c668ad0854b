import { readFile, writeFile } from "node:fs/promises"
import { expect, test } from "vitest"
import { createMachine } from "./run-tackle.ts"

test("undoes, refuses and redoes a turn of an earlier process", async () => {
  const machine = await createMachine({
    files: { "a.txt": "A" },
    script: [
      { calls: [{ name: "bash", arguments: { command: "printf B > a.txt; printf N > new.txt" } }] },
      { text: "Done." },
    ],
  })
  await machine.run(["run", "change it", "--allow", "*"])
  const path = machine.project.path("a.txt")
  expect(await readFile(path, "utf8")).toBe("B")

  const undone = await machine.run(["session", "undo"])
  expect(undone).toMatchObject({ code: 0 })
  expect(undone.stdout).toBe("Undid the changes of: change it\n  restored a.txt\n  removed new.txt\n")
  expect(await readFile(path, "utf8")).toBe("A")
  expect(await machine.run(["session", "undo"])).toMatchObject({ code: 2 })

  await writeFile(path, "mine")
  const refused = await machine.run(["session", "redo"])
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain(`${path}: it has changed since`)
  expect(refused.stderr).toContain("restore only the other files (--others)")
  expect(await readFile(path, "utf8")).toBe("mine")
  await writeFile(path, "A")
  const redone = await machine.run(["session", "redo", "--format", "json"])
  expect(JSON.parse(redone.stdout)).toMatchObject({
    prompt: "change it",
    files: [{ path, kind: "restored" }, {}],
  })
  expect(await readFile(path, "utf8")).toBe("B")
})

test("does not suggest --others when the turn changed no other file, and names what helps", async () => {
  const machine = await createMachine({
    files: { "a.txt": "A" },
    script: [{ calls: [{ name: "bash", arguments: { command: "printf B > a.txt" } }] }, { text: "Done." }],
  })
  await machine.run(["run", "change it", "--allow", "*"])
  const path = machine.project.path("a.txt")
  await writeFile(path, "mine")
  for (const flags of [[], ["--others"]]) {
    const { code, stderr } = await machine.run(["session", "undo", ...flags])
    expect(code).toBe(1)
    expect(stderr).toContain("The turn changed no other file, so --others does not help.")
    expect(stderr).toContain("once it has the content that the turn left in it.")
  }
  expect(await readFile(path, "utf8")).toBe("mine")
  expect(await machine.run(["session", "undo", "--skip"])).toMatchObject({
    code: 0,
    stdout:
      "Skipped the changes of: change it\n  left unchanged: a.txt\nThe next undo continues with the turn before this one.\n",
  })
  expect(await readFile(path, "utf8")).toBe("mine")
  expect(await machine.run(["session", "redo"])).toMatchObject({ code: 0 })
  await writeFile(path, "B")
  expect(await machine.run(["session", "undo"])).toMatchObject({ code: 0 })
  expect(await readFile(path, "utf8")).toBe("A")
})
