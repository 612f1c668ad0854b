import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { expect, test } from "vitest"
import { markedEnvironment } from "../lsp/processes.ts"
import { realServers, scriptedServer } from "../lsp/servers.ts"
import { createMachine } from "./run-tackle.ts"

const cases = [
  { name: "a real one", lsp: realServers.typescript, file: "a.ts" },
  // This server does not end when its input ends.
  { name: "one that never answers", lsp: scriptedServer("hang"), file: "a.txt" },
]

/** A real server takes seconds to start, and longer on a busy machine. */
const patience = { timeout: 60_000 }

test.skipIf(process.platform !== "linux").each(cases)(
  "ends the language server of a killed command at the next start: $name",
  patience,
  async ({ lsp, file }) => {
    const hover = { operation: "hover", filePath: file, line: 1, character: 14 }
    const machine = await createMachine({
      files: { "tsconfig.json": "{}", "a.ts": "export const one = 1\n", "a.txt": "some words of a text\n" },
      script: ({ body }) =>
        body.messages.some(({ role }) => role === "tool")
          ? { text: "words", pieceSize: 1, pieceDelayMs: 60_000 }
          : { calls: [{ name: "lsp", arguments: hover }] },
      config: { lsp, experimental: { lsp_tool: true }, permission: { lsp: "allow" } },
    })
    const { environment, running } = markedEnvironment()
    const env = { LANGUAGE_SERVER_TEST: environment.LANGUAGE_SERVER_TEST }
    const killed = machine.start(["run", "go"], { env, timeoutMs: 60_000 })
    const book = join(machine.data, "processes")
    // The record of the intent and the record of the process.
    const written = () =>
      readdir(book).then(
        ({ length }) => length,
        () => 0,
      )
    await expect.poll(written, { timeout: 40_000 }).toBe(2)
    await expect.poll(() => running().length, { timeout: 20_000 }).toBeGreaterThan(1)
    killed.child.kill("SIGKILL")
    await killed.ended

    await machine.run(["tool", "call", "read", '{"filePath":"none"}'])
    expect(running()).toEqual([])
    expect(await written()).toBe(0)
  },
)
