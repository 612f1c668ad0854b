import { existsSync } from "node:fs"
import { mkdir, writeFile } from "node:fs/promises"
import { expect, test } from "vitest"
import type { RecordedRequest } from "../../src/testing/model-server.ts"
import { createMachine, type Machine } from "./run-tackle.ts"

const tool = (output: string) =>
  `export default { description: "Says ${output}.", args: {}, execute: async () => "${output}" }\n`

/** The delay of a fast model: files are not checked more often between steps. */
const call = (name: string) => ({ calls: [{ name, arguments: {} }], delayMs: 250 })

/** The custom tools offered to the model. */
function offeredIn(request: RecordedRequest | undefined): string[] {
  const own = (request?.body.tools ?? []).filter((each) => each.function.description?.startsWith("Says "))
  return own.map((each) => `${each.function.name}: ${each.function.description}`)
}

async function writeOwnTool(machine: Machine, name: string, text: string): Promise<void> {
  const folder = `${machine.home}/config/tackle/tool`
  await mkdir(folder, { recursive: true })
  await writeFile(`${folder}/${name}`, text)
}

test("uses a new tool of the user from the next step of a run on, and reports a broken one", async () => {
  const machine: Machine = await createMachine({
    config: { permission: { "*": "allow" } },
    script: async (_request, index) => {
      if (index === 0) {
        await writeOwnTool(machine, "mine.ts", tool("one"))
        return call("read")
      }
      if (index === 1) {
        await writeOwnTool(machine, "mine.ts", tool("two"))
        return call("mine")
      }
      if (index === 2) {
        await writeOwnTool(machine, "mine.ts", "export default {\n  description: ,\n}\n")
        return call("mine")
      }
      return { text: "Done." }
    },
  })
  const run = await machine.run(["run", "go"])
  expect(run).toMatchObject({ code: 0, stdout: expect.stringContaining("Done.") })
  expect(machine.server.requests.map(offeredIn)).toEqual([[], ["mine: Says one."], ["mine: Says two."], []])
  const results = machine.server.requests.at(-1)?.body.messages.filter(({ role }) => role === "tool")
  expect(results?.at(-2)?.content).toBe("one")
  expect(results?.at(-1)?.content).toBe("two")
  expect(run.stderr).toMatch(/mine\.ts: [^/]*\(line 2\)/)
})

test("drops only the changed tool of the project, in one line, until it is trusted again", async () => {
  const machine: Machine = await createMachine({
    files: { ".tackle/tool/a.ts": tool("one"), ".tackle/tool/b.ts": tool("b") },
    config: { permission: { "*": "allow" } },
    script: async (_request, index) => {
      if (index === 0) {
        await machine.project.write(".tackle/tool/a.ts", tool("two"))
        await machine.project.write(".tackle/tool/c.ts", tool("new"))
        return call("b")
      }
      if (index === 1) {
        await machine.trust()
        return call("b")
      }
      return { text: "Done." }
    },
  })
  await machine.trust()
  const run = await machine.start(["run", "go"]).ended
  expect(machine.server.requests.map(offeredIn)).toEqual([
    ["a: Says one.", "b: Says b."],
    ["b: Says b."],
    ["a: Says two.", "b: Says b.", "c: Says new."],
  ])
  const lines = run.stderr.split("\n").filter((line) => line.includes("tackle trust"))
  expect(lines).toEqual([
    expect.stringMatching(/a\.ts: it has changed and is not trusted/),
    expect.stringMatching(/c\.ts: it is new and not trusted/),
  ])
})

test("drops tools at once when trust is revoked, also while the config is broken", async () => {
  const machine: Machine = await createMachine({
    files: { ".tackle/tool/a.ts": tool("one") },
    config: { permission: { "*": "allow" } },
    script: async (_request, index) => {
      if (index === 0) {
        await machine.run(["trust", "--revoke"])
        await machine.project.write("tackle.json", "{ broken")
      }
      return index < 2 ? call("read") : { text: "Done." }
    },
  })
  await machine.trust()
  await machine.start(["run", "go"]).ended
  expect(machine.server.requests.map(offeredIn)).toEqual([["a: Says one."], [], []])
})

test("trusts with --trust only what exists at the start, and loads nothing that the model writes", async () => {
  const machine: Machine = await createMachine({
    files: { ".tackle/tool/a.ts": tool("one") },
    config: { permission: { "*": "allow" } },
    script: async (_request, index) => {
      if (index === 0) {
        await machine.project.write(".tackle/tool/planted.ts", tool("planted"))
        return call("a")
      }
      if (index === 1) {
        await machine.project.write(".tackle/tool/a.ts", tool("other"))
        return call("read")
      }
      if (index === 2) {
        await machine.project.write(".tackle/tool/a.ts", tool("one"))
        return call("read")
      }
      return { text: "Done." }
    },
  })
  await machine.run(["run", "--trust", "go"])
  expect(machine.server.requests.map(offeredIn)).toEqual([
    ["a: Says one."],
    ["a: Says one."],
    [],
    ["a: Says one."],
  ])
})

test("names the user's file, not a file of Tackle, for an import of a missing package", async () => {
  const machine = await createMachine({
    files: {
      ".tackle/tool/a.ts": `import { z } from "zod"\nimport left from "left-pad-of-nothing"\n${tool("a")}`,
    },
  })
  const { stderr } = await machine.run(["tool", "list", "--trust"])
  expect(stderr).toMatch(
    /a\.ts: it imports "left-pad-of-nothing" \(line 2\), but that package is not installed/,
  )
  expect(stderr).not.toContain("dist")
})

test("uses the user's tools in the work tree once trusted, and asks for changes there despite allow rules", async () => {
  const machine: Machine = await createMachine({
    files: { "own/tackle/tool/a.ts": tool("one") },
    config: { permission: { "*": "allow" } },
    script: (_request, index) =>
      index % 2 === 0
        ? {
            calls: [{ name: "write", arguments: { filePath: "own/tackle/tool/b.ts", content: tool("two") } }],
          }
        : { text: "Done." },
  })
  const env = { XDG_CONFIG_HOME: machine.project.path("own") }
  const before = await machine.run(["run", "go"], { env })
  expect(before.stderr).toContain("own/tackle/tool/a.ts")
  await machine.run(["trust", "--yes"], { env })
  await machine.run(["run", "go"], { env })
  expect(machine.server.requests.map(offeredIn)).toEqual([[], [], ["a: Says one."], ["a: Says one."]])
  expect(existsSync(machine.project.path("own/tackle/tool/b.ts"))).toBe(false)
})
