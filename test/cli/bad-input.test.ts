import { expect, test } from "vitest"
import { callsOf, createMachine, endOf } from "./run-tackle.ts"

test("reports what is wrong with the input of a tool and what to do, and changes nothing", async () => {
  const machine = await createMachine({
    files: { "code.ts": "one\ntwo\none\n", "src/a.ts": "" },
    script: ({ body }) => {
      if (body.messages.at(-1)?.role === "tool") return { text: "I see." }
      return {
        calls: [
          { name: "read", arguments: { filePath: "cod.ts" } },
          { name: "read", arguments: { filePath: "blob.bin" } },
          { name: "write", arguments: { filePath: "src", content: "x" } },
          { name: "read", arguments: { filePath: "code.ts" } },
          { name: "edit", arguments: { filePath: "code.ts", oldString: "three", newString: "four" } },
          { name: "edit", arguments: { filePath: "code.ts", oldString: "one", newString: "four" } },
          { name: "edit", arguments: { filePath: "src/a.ts", oldString: "x", newString: "y" } },
          { name: "write", arguments: { filePath: "code.ts/below.ts", content: "x" } },
          { name: "grep", arguments: { pattern: "(" } },
          { name: "bash", arguments: { command: "exit 7", description: "Fail", workdir: "nowhere" } },
          { name: "READ", arguments: {} },
          { name: "shout", arguments: {} },
          { name: "read", arguments: '{"filePath": ' },
          { name: "read", arguments: { filePath: 7 } },
        ],
      }
    },
  })
  await machine.project.write("blob.bin", new Uint8Array([0, 1, 2, 0, 255, 254]))
  const run = await machine.run(["run", "--auto", "--format", "json", "go"])
  expect(endOf(run)).toMatchObject({ status: "completed", exitCode: 0, text: "I see." })
  const says = (pattern: RegExp) => expect.stringMatching(pattern)
  expect(callsOf(run)).toEqual([
    ["read", "error", says(/not found.*code\.ts/s)],
    ["read", "error", says(/binary/)],
    ["write", "error", says(/director/)],
    ["read", "completed", says(/1→one/)],
    ["edit", "error", says(/not found|does not|no match/i)],
    ["edit", "error", says(/1.*3/s)],
    ["edit", "error", says(/read/)],
    ["write", "error", says(/code\.ts/)],
    ["grep", "error", says(/regular expression|pattern|regex/i)],
    ["bash", "error", says(/nowhere/)],
    ["READ", "error", says(/filePath: expected string, got nothing/)],
    ["shout", "error", says(/this tool does not exist.*Available tools: .*read/s)],
    ["read", "error", says(/not valid JSON/)],
    ["read", "error", says(/filePath: expected string, got .*(number|7)/)],
  ])
  expect(await machine.project.read("code.ts")).toBe("one\ntwo\none\n")
  expect(run.stderr).toBe("")
})
