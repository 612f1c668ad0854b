import { expect, test } from "vitest"
import { startEngine } from "./engine.ts"

test("changes the data directory only by a rule that names it", async () => {
  const settings = { permission: { "*": "allow" } } as const
  await using engine = await startEngine([], settings)
  const { project, tackle } = engine
  for (const name of ["trust.json", "compiled/a/b.bin", "plugin/a.ts"]) {
    const file = project.path(`.data/${name}`)
    expect(await tackle.explain({ permission: "edit", patterns: [file] }), name).toMatchObject({
      verdict: "ask",
    })
    const command = `echo 1 > ${file}`
    expect(await tackle.explain({ permission: "bash", patterns: [command] }), name).toMatchObject({
      verdict: "ask",
    })
  }
  const read = { permission: "read", patterns: [project.path(".data/truncate/a.txt")] }
  expect(await tackle.explain(read)).toMatchObject({ verdict: "allow" })
})
