import { expect, test } from "vitest"
import { createMachine } from "./run-tackle.ts"

test("prints the answer to stdout and everything about the calls to stderr", async () => {
  const machine = await createMachine({
    files: { "notes.txt": "seven\n" },
    script: [
      {
        text: "I will look.",
        calls: [
          { name: "read", arguments: { filePath: "notes.txt" } },
          {
            name: "bash",
            arguments: { command: `echo ${"long ".repeat(60)}; exit 3`, description: "Say much" },
          },
          { name: "edit", arguments: { filePath: "notes.txt", oldString: "nine", newString: "ten" } },
        ],
      },
      { text: "It says \u001b[31mseven\u001b[0m." },
    ],
  })
  const run = await machine.run(["run", "--auto", "what do the notes say?"])
  expect(run.code).toBe(0)
  // A pipe receives the text unchanged.
  expect(run.stdout).toBe("I will look.\n\nIt says \u001b[31mseven\u001b[0m.\n")
  expect(run.stderr).toMatch(/^session ses_\w+ · build · test\/m$/m)
  expect(run.stderr).toMatch(/^· read notes\.txt$/m)
  expect(run.stderr).toMatch(/^✓ read notes\.txt · 1 line$/m)
  expect(run.stderr).toMatch(/^! bash echo long .*… · exit 3(?: · [\d.]+ s)?$/m)
  expect(run.stderr).toMatch(/^✗ edit notes\.txt$/m)
  expect(run.stderr).toMatch(/^done · [\d.]+ s · \d+ \+ \d+ tokens$/m)
  expect(run.stderr).toMatch(/^continue with: tackle run -s ses_\w+ "…"$/m)
  expect(run.stderr).not.toContain("\u001b")
  for (const line of run.stderr.split("\n")) expect([...line].length).toBeLessThanOrEqual(120)
})

test("reports an @ path that names no file with a suggestion, and continues", async () => {
  const machine = await createMachine({
    files: { "src/cart.js": "1\n" },
    script: [{ text: "Yes." }],
  })
  const { code, stderr } = await machine.run(["run", "does @src/crat.js use @scope/pkg? ask me@b.de"])
  expect(code).toBe(0)
  expect(stderr.split("\n").filter((line) => line.startsWith("tackle:"))).toEqual([
    "tackle: @src/crat.js does not match a file, so nothing is attached. Did you mean @src/cart.js?",
  ])
})

test("shows below a call which formatters changed the file and which failed", async () => {
  const machine = await createMachine({
    script: [
      { calls: [{ name: "write", arguments: { filePath: "a.txt", content: "one  \n" } }] },
      { text: "Written." },
    ],
    files: {
      "tackle.json": JSON.stringify({
        formatter: {
          blanks: {
            command: ["sed", "-i", "s/ *$//", "$FILE"],
            extensions: [".txt"],
            runsProjectCode: false,
          },
          second: { command: ["false"], extensions: [".txt"], runsProjectCode: false },
        },
      }),
    },
  })
  const run = await machine.run(["run", "--auto", "--trust", "write"])
  expect(run.stderr).toMatch(
    /^✓ write a\.txt · \+1 −0.*\n {2}formatted by blanks · \+1 −1\n {2}not formatted: second: ended with exit code 1$/m,
  )
})

test("reports an answer that is empty or ended early, with exit code 3", async () => {
  const machine = await createMachine({
    script: [{}, {}, { text: "Ha", finish: "length" }, { text: "lf" }, { text: "No", finish: "safety" }],
  })
  const silent = await machine.run(["run", "hi"])
  expect(silent).toMatchObject({ code: 3, stdout: "" })
  expect(silent.stderr).toMatch(/^↻ The answer contains no text\. The model is asked again\.$/m)
  expect(silent.stderr).toMatch(/^the answer is incomplete · /m)
  const continued = await machine.run(["run", "hi"])
  expect(continued.code).toBe(0)
  expect(continued.stderr).toMatch(/^↻ The answer ended early because .* output limit \(length\)\./m)
  const filtered = await machine.run(["run", "--format", "json", "hi"])
  expect(filtered.code).toBe(3)
  expect(filtered.stdout).toMatch(/"type":"session.error".*"name":"incomplete".*content filter \(safety\)/)
  expect(filtered.stdout).toContain('"status":"incomplete","exitCode":3,"text":"No"')
})

test("prints only the repeated answer to a pipe if the first answer broke off", async () => {
  const words = "one two three four five six seven eight nine ten"
  const machine = await createMachine({
    script: [
      { text: words, pieceSize: 4, pieceDelayMs: 5, fault: "cut" },
      { text: words, pieceSize: 4 },
    ],
  })
  const run = await machine.run(["run", "count"])
  expect(run).toMatchObject({ code: 0, stdout: `${words}\n` })
  expect(machine.server.requests).toHaveLength(2)
})

test("prints the end of a command's output and the diff of an edit to stderr, and with --quiet only one line", async () => {
  const calls = [
    { name: "bash", arguments: { command: "factor $(seq 2 31)", description: "Count" } },
    { name: "bash", arguments: { command: "factor 7; echo broken >&2; exit 4", description: "Fail" } },
    { name: "read", arguments: { filePath: "notes.txt" } },
    { name: "edit", arguments: { filePath: "notes.txt", oldString: "seven", newString: "eight" } },
  ]
  const script = [...calls.map((call) => ({ calls: [call] })), { text: "Done." }]
  const machine = await createMachine({ files: { "notes.txt": "seven\n" }, script: [...script, ...script] })
  const run = await machine.run(["run", "--auto", "work"])
  expect(run.stdout).toBe("Done.\n")
  expect(run.stderr).toMatch(
    /^✓ bash factor \$\(seq 2 31\) · exit 0.*\n {2}… 22 earlier lines\n {2}24: .*\n(?: {2}\d+: .*\n){6} {2}31: 31\n·/m,
  )
  expect(run.stderr).toMatch(/^! bash factor 7.* · exit 4.*\n {2}7: 7\n {2}broken\n·/m)
  expect(run.stderr).toMatch(/^✓ edit notes\.txt · \+1 −1.*\n[^✓]*\n {2}-seven\n {2}\+eight\ndone/m)

  await machine.project.write("notes.txt", "seven\n")
  const quiet = await machine.run(["run", "--auto", "--quiet", "work"])
  expect(quiet.stderr.replaceAll(/ · [\d.]+ s/g, "")).toMatch(
    /^session .*\n✓ bash factor .* · exit 0\n! bash factor 7.* · exit 4\n✓ read notes\.txt · 1 line\n✓ edit notes\.txt · \+1 −1\ndone/,
  )
})

test.each([
  [50, "50% █████░░░░░"],
  [{ done: 3, total: 10 }, "3/10 ███░░░░░░░"],
])("shows the title and the progress %j that a custom tool reports", async (progress, shown) => {
  const machine = await createMachine({
    files: {
      ".tackle/tool/deploy.js": `export default {
        description: "Deploys.",
        args: { progress: { type: ["number", "object"] } },
        async execute(args, ctx) {
          await ctx.metadata({ title: "uploading", progress: args.progress })
          await new Promise((resolve) => setTimeout(resolve, 200))
          return { title: "deployed to test", output: "ok", metadata: {} }
        },
      }`,
    },
    script: [{ calls: [{ name: "deploy", arguments: { progress } }] }, { text: "Done." }],
  })
  const run = await machine.run(["run", "--trust", "--auto", "deploy"])
  expect(run.stderr).toContain(`· deploy\n· deploy: uploading ${shown}\n✓ deploy deployed to test\ndone`)
})
