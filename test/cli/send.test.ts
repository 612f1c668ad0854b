import { describe, expect, test } from "vitest"
import type { Input } from "../../src/schema/input.ts"
import type { ModelRequestBody, RecordedRequest } from "../../src/testing/model-server.ts"
import type { Reply } from "../../src/testing/reply.ts"
import { createMachine, eventsOf, type Machine, type MachineOptions, until } from "./run-tackle.ts"

function lastText({ messages }: ModelRequestBody): string {
  const { content } = messages.at(-1) ?? {}
  return typeof content === "string" ? content : JSON.stringify(content)
}

/** A machine with one session. The model repeats the last text, and answers a text with "wait" when the test says so. */
async function machineWithSession(options: MachineOptions = {}) {
  const go = Promise.withResolvers<void>()
  let isWaiting = false
  const script = async ({ body }: RecordedRequest): Promise<Reply> => {
    const text = lastText(body)
    if (body.messages.at(-1)?.role === "user" && text.includes("wait")) {
      isWaiting = true
      await go.promise
      return { text: "waited", calls: [{ name: "list", arguments: {} }] }
    }
    return { text: body.messages.at(-1)?.role === "user" ? `heard ${text}` : "listed" }
  }
  const machine = await createMachine({ script, ...options })
  const { stderr } = await machine.run(["run", "first"])
  const sessionID = /session (ses_\w+)/.exec(stderr)?.[1] ?? ""
  const waiting = () => until("the model is asked to wait", () => isWaiting)
  return { machine, sessionID, go: () => go.resolve(), waiting }
}

async function listed(machine: Machine): Promise<Input[]> {
  return JSON.parse((await machine.run(["queue", "--json"])).stdout).inputs
}

async function talk(machine: Machine): Promise<string[]> {
  const { stdout } = await machine.run(["session", "show", "--json"])
  return JSON.parse(stdout).messages.flatMap(({ message, parts }: { message: { role: string }; parts: [] }) =>
    parts.flatMap((part: { type: string; text: string }) =>
      part.type === "text" ? [`${message.role}: ${part.text}`] : [],
    ),
  )
}

describe("tackle send", () => {
  test("runs an idle session in the foreground", async () => {
    const { machine, sessionID } = await machineWithSession()
    const sent = await machine.run(["send", "hello", "there"])
    expect(sent).toMatchObject({ code: 0, stdout: "heard hello there\n" })
    expect(sent.stderr).toContain(`continuing session ${sessionID}`)
    expect(await machine.run(["send", "-s", sessionID, "-"], { stdin: "from stdin" })).toMatchObject({
      code: 0,
      stdout: "heard from stdin\n",
    })
    expect(await listed(machine)).toEqual([])
  })

  test("sends to the session whose id is the first argument, as `session show` reads it", async () => {
    const { machine, sessionID } = await machineWithSession()
    await machine.run(["run", "second session"])
    const sent = await machine.run(["send", sessionID, "hello", "there"])
    expect(sent).toMatchObject({ code: 0, stdout: "heard hello there\n" })
    expect(sent.stderr).toContain(`continuing session ${sessionID}`)
    const piped = await machine.run(["send", sessionID], { stdin: "from stdin" })
    expect(piped.stdout).toBe("heard from stdin\n")
    expect((await machine.run(["send", "-c", sessionID])).stdout).toBe(`heard ${sessionID}\n`)
    expect(await machine.run(["send", "ses_unknown", "hello"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("ses_unknown"),
    })
  })

  test("prints the receipt and the events as JSON", async () => {
    const { machine, sessionID } = await machineWithSession()
    const run = await machine.run(["send", "--id", "mine", "--json", "hello"])
    const [receipt, ...events] = eventsOf(run)
    expect(receipt).toMatchObject({
      ...{ type: "input.receipt", sessionID, id: "mine", state: "pending", delivery: "steer" },
      ...{ seq: expect.any(Number), process: expect.any(Number) },
    })
    expect(events).toContainEqual(
      expect.objectContaining({
        type: "input.updated",
        input: expect.objectContaining({ id: "mine", state: "promoted" }),
      }),
    )
    const again = await machine.run(["send", "--id", "mine", "--json", "hello"])
    expect(JSON.parse(again.stdout)).toMatchObject({ id: "mine", state: "promoted" })
    expect((await machine.run(["send", "--id", "mine", "hello"])).stdout).toBe(
      `mine was already delivered in ${sessionID}.\n`,
    )
    expect(machine.server.requests).toHaveLength(2)
    expect(await machine.run(["send", "--id", "mine", "other"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("has already been sent"),
    })
  })

  test("leaves the delivery to the process that runs the session, which delivers in order and then exits", async () => {
    const { machine, sessionID, go, waiting } = await machineWithSession()
    const run = machine.start(["run", "-c", "wait", "for", "me"])
    await waiting()
    const pid = run.child.pid
    for (const [delivery, what] of [
      ["queue", `Process ${pid} will deliver it after its current run.`],
      ["steer", `Process ${pid} will deliver it before its next step.`],
    ] as const) {
      const sent = await machine.run(["send", "--delivery", delivery, "--id", delivery, `${delivery} me`])
      expect(sent).toMatchObject({
        code: 0,
        stderr: "",
        stdout: `Queued ${delivery} in ${sessionID}. ${what}\n`,
      })
    }
    expect((await listed(machine)).map(({ id }) => id)).toEqual(["queue", "steer"])
    go()
    const ended = await run.ended
    expect(ended).toMatchObject({ code: 0, stdout: "waited\n\nheard steer me\n\nheard queue me\n" })
    expect(ended.stderr).toMatch(/› steer me[\s\S]*done ·[\s\S]*› queue me[\s\S]*done ·/)
    expect(await talk(machine)).toEqual([
      ...["user: first", "assistant: heard first", "user: wait for me", "assistant: waited"],
      ...["user: steer me", "assistant: heard steer me", "user: queue me", "assistant: heard queue me"],
    ])
  })

  test("stops the run of another process with --delivery now, which then continues with the text", async () => {
    const { machine, waiting } = await machineWithSession()
    const run = machine.start(["run", "-c", "--json", "wait"])
    await waiting()
    const sent = await machine.run(["send", "--delivery", "now", "--json", "stop that"])
    expect(JSON.parse(sent.stdout)).toMatchObject({ state: "pending", process: run.child.pid })
    const ended = await run.ended
    const events = ended.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
    const ends = events.filter(({ type }) => type === "run.completed")
    expect(ends).toMatchObject([{ status: "interrupted" }, { status: "completed", text: "heard stop that" }])
    expect(events.at(-1)).toEqual(ends.at(-1))
    expect(ended.code).toBe(0)
  })

  test("calls commands, attaches files and resolves mentions", async () => {
    const { machine } = await machineWithSession({
      files: { "a.txt": "alpha", "b.txt": "beta", ".tackle/command/repeat.md": "say $1 twice" },
    })
    await machine.trust()
    await machine.run(["send", "/repeat", "it"])
    expect(JSON.stringify(machine.server.requests.at(-1)?.body.messages)).toContain("say it twice")
    await machine.run(["send", "-f", "a.txt", "and @b.txt"])
    const sent = JSON.stringify(machine.server.requests.at(-1)?.body.messages)
    expect(sent).toContain("alpha")
    expect(sent).toContain("beta")
    expect((await machine.run(["send", "/repaet it"])).stderr).toContain("Did you mean /repeat?")
  })

  test("only stores the text with --no-run", async () => {
    const { machine, sessionID } = await machineWithSession()
    const sent = await machine.run(["send", "--no-run", "--id", "a", "later"])
    expect(sent).toMatchObject({
      code: 0,
      stdout: `Queued a in ${sessionID}. To deliver it: tackle queue resume -s ${sessionID}\n`,
    })
    expect(machine.server.requests).toHaveLength(1)
    expect(await machine.run(["queue", "resume"])).toMatchObject({ code: 0, stdout: "heard later\n" })
    expect(await machine.run(["queue", "resume"])).toMatchObject({
      code: 0,
      stdout: `${sessionID} has no inputs to deliver.\n`,
    })
  })

  test("needs a session and a text", async () => {
    const machine = await createMachine()
    expect(await machine.run(["send", "hello"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no sessions yet"),
    })
    expect((await machine.run(["send", "-s", "ses_none", "hello"])).code).toBe(2)
    expect((await machine.run(["send", "-"], { stdin: "" })).code).toBe(2)
    expect((await machine.run(["send", "--delivery", "soon", "hello"])).code).toBe(2)
    expect((await machine.run(["send", "-c", "-s", "ses_none", "hello"])).code).toBe(2)
  })
})

test("Ctrl+C pauses the queue, and `queue resume` continues it", async () => {
  const { machine, sessionID, waiting } = await machineWithSession()
  const run = machine.start(["run", "-c", "wait"])
  await waiting()
  await machine.run(["send", "--delivery", "queue", "later"])
  run.child.kill("SIGINT")
  expect(await run.ended).toMatchObject({ code: 130 })
  const { stdout } = await machine.run(["queue"])
  expect(stdout).toContain("queue, paused  later")
  expect(stdout).toContain(`The queue is paused. To continue: tackle queue resume -s ${sessionID}`)
  expect(await machine.run(["queue", "resume"])).toMatchObject({ code: 0, stdout: "heard later\n" })
})

describe("tackle queue", () => {
  test("edits, moves, holds, releases and withdraws inputs", async () => {
    const { machine, sessionID } = await machineWithSession()
    for (const id of ["a", "b", "c", "d"])
      await machine.run(["send", "--no-run", "--delivery", "queue", "--id", id, `text ${id}`])
    expect((await machine.run(["queue", "edit", "a", "new", "text"])).stdout).toContain(
      "1  a  queue  new text\n",
    )
    expect((await machine.run(["queue", "move", "c", "1"])).stdout).toContain("1  c  queue  text c\n")
    expect((await machine.run(["queue", "hold", "b", "d"])).stdout).toContain("queue, held  text b\n")
    expect((await machine.run(["queue", "withdraw", "d"])).stdout).toBe("Withdrew d.\n")
    expect((await listed(machine)).map(({ id, text, held }) => [id, text, held ?? false])).toEqual([
      ["c", "text c", false],
      ["a", "new text", false],
      ["b", "text b", true],
    ])
    expect(machine.server.requests).toHaveLength(1)
    expect((await machine.run(["queue", "resume"])).stdout).toBe("heard text c\n\nheard new text\n")
    expect((await machine.run(["queue", "release", "b"])).stdout).toContain(
      `The session is idle. To deliver its inputs: tackle queue resume -s ${sessionID}`,
    )
    expect(await machine.run(["queue", "withdraw", "--all"])).toMatchObject({
      code: 0,
      stdout: `Withdrew 1 input from ${sessionID}.\n`,
    })
    expect((await machine.run(["queue"])).stdout).toBe(`${sessionID} has no pending inputs.\n`)
  })

  test("reads a command in the new text", async () => {
    const { machine } = await machineWithSession({ files: { ".tackle/command/say.md": "say $1 twice" } })
    await machine.trust()
    await machine.run(["send", "--no-run", "--id", "a", "hello"])
    await machine.run(["queue", "edit", "a", "/say it"])
    await machine.run(["queue", "resume"])
    expect(JSON.stringify(machine.server.requests.at(-1)?.body.messages)).toContain("say it twice")
  })

  test("reports unknown and delivered inputs and missing arguments", async () => {
    const { machine } = await machineWithSession()
    await machine.run(["send", "--id", "done", "hello"])
    const failures = [
      [["edit", "none", "x"], 2, "no input none"],
      [["edit", "done", "x"], 1, "was delivered"],
      [["edit", "done"], 2, "new text"],
      [["move", "done", "0"], 2, "at least 1"],
      [["withdraw"], 2, "--all"],
      [["withdraw", "done", "--all"], 2, "not both"],
    ] as const
    for (const [args, code, text] of failures)
      expect(await machine.run(["queue", ...args]), args.join(" ")).toMatchObject({
        code,
        stderr: expect.stringContaining(text),
      })
  })
})
