import { expect, test } from "vitest"
import { callsOf, createMachine, endOf, eventsOf, only, tackleCommand } from "./run-tackle.ts"

const bash = (command: string) => ({ name: "bash", arguments: { command, description: "Do it" } })

test("exits with 1 when the provider refuses the key or fails in all attempts", async () => {
  const machine = await createMachine({
    config: { retry: { maxAttempts: 2, maxDelaySeconds: 5 } },
    script: [
      { status: 401, text: "No such key." },
      { status: 500, text: "Broken.", headers: { "retry-after-ms": "5" } },
      { status: 500, text: "Still broken.", headers: { "retry-after-ms": "5" } },
    ],
  })
  const unauthorized = await machine.run(["run", "--format", "json", "hi"])
  expect(endOf(unauthorized)).toMatchObject({ status: "failed", exitCode: 1, text: "" })
  expect(only(eventsOf(unauthorized), "session.error")).toMatchObject([
    { error: { name: "auth", status: 401, message: expect.stringContaining("No such key.") } },
  ])

  const failing = await machine.run(["run", "hi"])
  expect(failing.code).toBe(1)
  expect(failing.stderr).toMatch(
    /^↻ attempt 1 failed, retrying in 1 s: test\/m: 127\.0\.0\.1:\d+ returned 500: Broken/m,
  )
  expect(failing.stderr).toMatch(
    /^✗ test\/m: 127\.0\.0\.1:\d+ returned 500: Still broken\. The server asks you to wait 1 s\.$/m,
  )
  expect(failing.stderr).toMatch(/^failed · /m)
  expect(machine.server.requests).toHaveLength(3)
})

test("exits with 2 on a wrong command line, reports it in a line or two and starts nothing", async () => {
  const machine = await createMachine()
  const cases: [args: string[], says: RegExp][] = [
    [["rum", "hi"], /^tackle: unknown command 'rum'\n\(Did you mean run\?\)\nRun `tackle --help` for usage/],
    [
      ["run", "--max-step", "3", "hi"],
      /^tackle: unknown option '--max-step'\n\(Did you mean --max-steps\?\)\n/,
    ],
    [
      ["run", "--max-steps", "none", "hi"],
      /'none' is invalid\. The value must be a whole number of at least 1\.\n/,
    ],
    [["run", "--format", "xml", "hi"], /Allowed choices are text, json\.\n/],
    [["run"], /^tackle: The prompt is empty, because stdin contained no text\.\n$/],
    [
      ["run", "-s", "ses_none", "hi"],
      /^tackle: The session ses_none does not exist\. Run `tackle session list --all` to list the sessions\.\n$/,
    ],
    [["run", "-c", "-s", "ses_x", "hi"], /'-c, --continue' cannot be used with option '-s, --session <id>'/],
    [["run", "-c", "hi"], /^tackle: This project has no sessions yet\.\n$/],
    [["run", "--agent", "nobody", "hi"], /^tackle: Unknown agent "nobody"\. Available: build, plan/],
    [["run", "-m", "test/n", "hi"], /^tackle: The model test\/n is unknown\. Did you mean test\/m/],
    [["run", "-m", "nonsense", "hi"], /^tackle: "nonsense" is not a model name\. Use provider\/model/],
    [["run", "--dir", "nowhere", "hi"], /^tackle: The --dir directory \/.*\/nowhere does not exist\.\n$/],
    [["run", "--allow", "", "hi"], /^tackle: .*--allow/],
  ]
  const runs = await Promise.all(cases.map(([args]) => machine.run(args)))
  for (const [index, { code, stdout, stderr }] of runs.entries()) {
    const [args, says] = cases[index] ?? []
    expect({ args, code, stdout, stderr }).toEqual({
      args,
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(says ?? ""),
    })
  }
  expect(machine.server.requests).toEqual([])
  expect((await machine.run(["session", "list", "--all"])).stdout).toBe("No sessions yet.\n")
})

test("exits with 2 in a directory that no longer exists", async () => {
  const machine = await createMachine()
  const gone = await machine.run(["list the files"], {
    command: ["/bin/sh", "-c", `mkdir gone && cd gone && rmdir ../gone && exec ${tackleCommand} run "$0"`],
  })
  expect(gone).toMatchObject({ code: 2, stdout: "" })
  // The shell of bin/tackle prints its own message first.
  expect(gone.stderr).toMatch(
    /^tackle: The current directory no longer exists\. .*--dir \/path\/to\/project\.\n$/m,
  )
})

test("exits with 2 on a config error and names line, column and the nearest key", async () => {
  const machine = await createMachine({
    config: null,
    files: { "tackle.json": '{\n  "permision": { "bash": "deny" },\n  "model": 7\n}\n' },
  })
  const own = await machine.run(["run", "--trust", "hi"])
  expect(own.code).toBe(2)
  expect(own.stderr).toContain(`${machine.project.path("tackle.json")}:2:3: `)
  expect(own.stderr).toMatch(/permision.*permission/)
  expect(own.stderr).toContain(`${machine.project.path("tackle.json")}:3:3: `)

  const env = { TACKLE_CONFIG_CONTENT: '{ "model": "test/m", }}' }
  const inline = await machine.run(["config", "show"], { env })
  expect(inline).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^ *TACKLE_CONFIG_CONTENT:1:\d+: /m),
  })

  // An untrusted project can only tighten the rules. A key that may be a rule stops the command there too.
  const untrusted = await machine.run(["config", "show"])
  expect(untrusted).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/tackle\.json:2:3: .*permision.*permission/),
  })
})

test("exits with 3 after a refusal without a terminal, by a rule or by --auto", async () => {
  const machine = await createMachine({
    git: true,
    files: { ".env": "KEY=1\n" },
    script: (_request, index) =>
      [
        { calls: [bash("touch made")] },
        { text: "I may not." },
        { calls: [bash("touch made; rm -rf made")] },
        { text: "I may not either." },
        {
          calls: [
            { name: "read", arguments: { filePath: ".env" } },
            { name: "write", arguments: { filePath: ".git/hooks/pre-commit", content: "x" } },
            bash("echo x >> .git/config"),
            { name: "read", arguments: { filePath: "/etc/hostname" } },
          ],
        },
        { text: "Guarded." },
      ][index] ?? {},
  })
  const alone = await machine.run(["run", "--format", "json", "make it"])
  expect(endOf(alone)).toMatchObject({
    status: "completed",
    exitCode: 3,
    text: "I may not.",
    refused: [{ tool: "bash", permission: "bash", patterns: ["touch made"], by: "no-terminal" }],
  })
  expect(callsOf(alone)).toEqual([["bash", "error", expect.stringContaining("no user is available here")]])
  expect(only(eventsOf(alone), "permission.replied")).toMatchObject([
    { reply: "reject", source: "no-terminal" },
  ])

  const denied = await machine.run(["run", "--auto", "--deny", "bash:rm *", "make it"])
  expect(denied.code).toBe(3)
  expect(denied.stderr).toMatch(/^⊘ bash touch made; rm -rf made$/m)
  expect(denied.stderr).toMatch(/^done · .* · 1 refused$/m)

  const guarded = await machine.run(["run", "--auto", "--format", "json", "look into the guarded files"])
  const end = endOf(guarded)
  expect(end.exitCode).toBe(3)
  expect(end.refused.map(({ tool, by }) => [tool, by])).toEqual([
    ["read", "auto"],
    ["write", "auto"],
    ["bash", "auto"],
  ])
  // A path outside the project requires a question, which --auto answers with yes.
  expect(callsOf(guarded).at(-1)?.[1]).toBe("completed")
  expect(await machine.project.read(".git/config")).not.toContain("x\n[")
})

test("exits with 4 at the step limit, the time limit and the third refusal of a loop", async () => {
  const read = { name: "read", arguments: { filePath: "a.txt" } }
  const machine = await createMachine({
    files: { "a.txt": "a\n" },
    script: ({ body }) => {
      const prompt = body.messages.find(({ role }) => role === "user")?.content
      if (prompt === "wait") return { calls: [bash("sleep 60")] }
      return body.tool_choice === "none" ? { text: "So far." } : { calls: [read] }
    },
  })
  const steps = await machine.run(["run", "--format", "json", "--max-steps", "2", "go round"])
  expect(endOf(steps)).toMatchObject({ status: "limit", exitCode: 4, text: "So far." })
  expect(machine.server.requests.at(-1)?.body.tools?.length).toBeGreaterThan(0)

  const loop = await machine.run(["run", "--auto", "--format", "json", "go round"])
  expect(endOf(loop)).toMatchObject({ status: "limit", exitCode: 4 })
  expect(endOf(loop).refused.map(({ permission, by }) => [permission, by])).toEqual(
    Array(3).fill(["doom_loop", "auto"]),
  )
  expect(callsOf(loop).map(([, status]) => status)).toEqual([
    "completed",
    "completed",
    "error",
    "error",
    "error",
  ])
  expect(callsOf(loop).at(-1)?.[2]).toContain("the same call was made")

  const time = await machine.run(["run", "--auto", "--format", "json", "--timeout", "1", "wait"])
  expect(endOf(time)).toMatchObject({ status: "limit", exitCode: 4 })
  expect(only(eventsOf(time), "session.error")).toMatchObject([
    { error: { name: "limit", message: expect.stringContaining("the --timeout limit of 1 s") } },
  ])
})
