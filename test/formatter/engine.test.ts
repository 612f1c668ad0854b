import { readFile } from "node:fs/promises"
import { expect, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { temporaryProject } from "../../src/testing/project.ts"

test("an engine formats with the formatters of its options, also outside sessions", async () => {
  const project = await temporaryProject()
  const tackle = await createTackle({
    directory: project.directory,
    dataDirectory: project.path("data"),
    store: createMemoryStore(),
    permission: { edit: "allow" },
    formatter: {
      blanks: {
        command: ["sed", "-i", "s/ *$//", "$FILE"],
        extensions: [".txt"],
        runsProjectCode: false,
      },
    },
  })
  try {
    const input = JSON.stringify({ filePath: "a.txt", content: "one  \n" })
    const { state } = await tackle.callTool({ tool: "write", input })
    expect(state).toMatchObject({ status: "completed", metadata: { formatted: { by: ["blanks"] } } })
    expect(await readFile(project.path("a.txt"), "utf8")).toBe("one\n")
  } finally {
    await tackle.close()
    await project.remove()
  }
})
