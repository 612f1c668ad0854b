import { expect, test } from "vitest"
import { callsOf, createMachine, endOf } from "./run-tackle.ts"

const bash = (command: string) => ({ name: "bash", arguments: { command, description: "Do it" } })
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

test("applies --allow and --deny as rules: asks for the rest, and denies also with --auto", async () => {
  const machine = await createMachine({
    script: ({ body }) => {
      if (body.messages.at(-1)?.role === "tool") return { text: "Done." }
      return { calls: [bash("printenv HOME"), bash("printenv2 b"), bash("rm -f a"), bash("(rm -f a)")] }
    },
  })
  const run = await machine.run([
    "run",
    "--format",
    "json",
    "--allow",
    "bash:printenv *",
    "--allow",
    "bash:rm *",
    "--deny",
    "bash:rm *",
    "go",
  ])
  expect(callsOf(run).map(([, status]) => status)).toEqual(["completed", "error", "error", "error"])
  expect(endOf(run)).toMatchObject({ exitCode: 3 })
  expect(
    endOf(run)
      .refused.map(({ by }) => by)
      .sort(),
  ).toEqual(["no-terminal", "rule", "rule"])

  const auto = await machine.run(["run", "--auto", "--format", "json", "--deny", "bash", "go"])
  // No call of bash could be allowed, so it is not offered.
  const offered = machine.server.requests.at(-1)?.body.tools?.map(({ function: { name } }) => name)
  expect(offered).toContain("read")
  expect(offered).not.toContain("bash")
  expect(callsOf(auto).map(([, status, text]) => [status, /unavailable|not offered/.test(text)])).toEqual(
    Array(4).fill(["error", true]),
  )
  expect(endOf(auto)).toMatchObject({ exitCode: 3 })
})

test("attaches with --file what read and list would show, and reports a bad file before any request", async () => {
  const machine = await createMachine({
    files: { "src/notes.txt": "seven\n", "src/deep/x.ts": "", ".env": "KEY=1\n" },
    config: { permission: { read: { "*.pem": "deny" } } },
    script: [{ text: "Seen." }],
  })
  await machine.project.write("blob.bin", new Uint8Array([0, 1, 2, 0, 255, 254]))
  await machine.project.write("dot.png", Buffer.from(pixel, "base64"))
  await machine.project.write("key.pem", "secret\n")
  const run = await machine.run([
    "run",
    "look",
    "-f",
    "src/notes.txt",
    "-f",
    "src",
    "-f",
    "dot.png",
    "-f",
    ".env",
  ])
  expect(run).toMatchObject({ code: 0, stdout: "Seen.\n" })
  const content = machine.server.requests[0]?.body.messages.at(-1)?.content
  const text = JSON.stringify(content)
  expect(text).toContain("look")
  expect(text).toMatch(/<file path=.*notes\.txt.*1→seven/)
  expect(text).toMatch(/<directory path=.*deep\/.*notes\.txt.*<\/directory>/)
  // This model takes no images, and receives a note.
  expect(text).toMatch(/image\/png, dot\.png.*was not sent/)
  // Naming a file permits to read it.
  expect(text).toContain("KEY=1")

  const refusals: [file: string, says: RegExp][] = [
    ["none.txt", /^tackle: Cannot attach none\.txt: .*File not found/],
    ["src/note.txt", /notes\.txt/],
    ["blob.bin", /^tackle: Cannot attach blob\.bin: .*binary/],
    ["key.pem", /^tackle: Cannot attach key\.pem: .*denied by a rule/],
  ]
  const runs = await Promise.all(refusals.map(([file]) => machine.run(["run", "--auto", "look", "-f", file])))
  for (const [index, { code, stderr }] of runs.entries()) {
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(refusals[index]?.[1] ?? "") })
  }
  expect(machine.server.requests).toHaveLength(1)
  const sessions = JSON.parse((await machine.run(["session", "list", "--format", "json"])).stdout)
  expect(sessions.sessions).toHaveLength(1)
})

test("works in the directory of --dir, and refuses edits of the plan agent also with --auto", async () => {
  const machine = await createMachine({
    git: true,
    files: { "inner/here.txt": "here\n", "there.txt": "there\n" },
    script: ({ body }, index) => {
      if (body.messages.at(-1)?.role === "tool") return { text: "Done." }
      if (index === 0) return { calls: [bash("pwd"), { name: "read", arguments: { filePath: "here.txt" } }] }
      return {
        calls: [
          { name: "read", arguments: { filePath: "there.txt" } },
          { name: "edit", arguments: { filePath: "there.txt", oldString: "there", newString: "gone" } },
          bash("echo gone > there.txt"),
        ],
      }
    },
  })
  const inner = await machine.run(["run", "--dir", "inner", "--format", "json", "go"])
  expect(endOf(inner).exitCode).toBe(0)
  expect(callsOf(inner)).toMatchObject([
    ["bash", "completed", expect.stringContaining(machine.project.path("inner"))],
    ["read", "completed", expect.stringContaining("1→here")],
  ])

  const plan = await machine.run(["run", "--auto", "--agent", "plan", "--format", "json", "go"])
  expect(callsOf(plan).map(([tool, status]) => [tool, status])).toEqual([
    ["read", "completed"],
    ["edit", "error"],
    ["bash", "error"],
  ])
  expect(await machine.project.read("there.txt")).toBe("there\n")
})
