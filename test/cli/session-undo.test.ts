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
  expect(undone.stdout).toMatch(
    /^Undid the changes of: change it\n {2}in ses_\w+\n {2}restored a\.txt\n {2}removed new\.txt\n$/,
  )
  expect(await readFile(path, "utf8")).toBe("A")
  expect(await machine.run(["session", "undo"])).toMatchObject({ code: 2 })

  await writeFile(path, "mine")
  const refused = await machine.run(["session", "redo"])
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain(`${path}: it has been changed in the meantime`)
  expect(refused.stderr).toContain("use --others to restore only the other files")
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
    expect(stderr).toContain("The turn changed no other files, so --others does not help.")
    expect(stderr).toContain("first give it the content that it had after the turn.")
  }
  expect(await readFile(path, "utf8")).toBe("mine")
  expect(await machine.run(["session", "undo", "--skip"])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^Skipped the changes of: change it\n {2}in ses_\w+\n {2}left unchanged: a\.txt\nThe next undo continues with the turn before this one\.\n$/,
    ),
  })
  expect(await readFile(path, "utf8")).toBe("mine")
  expect(await machine.run(["session", "redo"])).toMatchObject({ code: 0 })
  await writeFile(path, "B")
  expect(await machine.run(["session", "undo"])).toMatchObject({ code: 0 })
  expect(await readFile(path, "utf8")).toBe("A")
})

test("names the session that changed files when the last session changed none", async () => {
  const machine = await createMachine({
    files: { "a.txt": "A" },
    script: [
      { calls: [{ name: "bash", arguments: { command: "printf B > a.txt" } }] },
      { text: "Done." },
      { text: "Nothing to do." },
      { text: "Still nothing." },
    ],
  })
  await machine.run(["run", "change it", "--allow", "*"])
  await machine.run(["run", "just talk"])
  const nothing = await machine.run(["session", "undo"])
  expect(nothing.code).toBe(2)
  const [, command = ""] =
    /The latest session that changed files is ses_\w+ \("change it"\)\. Run `(tackle session undo ses_\w+)`\./.exec(
      nothing.stderr,
    ) ?? []
  const undone = await machine.run(["-c", command], { command: ["/bin/sh"] })
  expect(undone).toMatchObject({ code: 0, stdout: expect.stringContaining("restored a.txt") })
  expect(await readFile(machine.project.path("a.txt"), "utf8")).toBe("A")

  await machine.run(["run", "talk again"])
  const redo = await machine.run(["session", "redo"])
  expect(redo.stderr).toMatch(
    /The latest session with an undone turn is ses_\w+ .*`tackle session redo ses_\w+`/,
  )
})
