import { expect, test } from "vitest"
import type { ModelRequestBody } from "../../src/testing/model-server.ts"
import type { Reply } from "../../src/testing/reply.ts"
import { createMachine, eventsOf } from "./run-tackle.ts"
import { hasTmux, openTerminal } from "./terminal.ts"

const task = {
  name: "task",
  arguments: { description: "find the number", prompt: "Which number?", subagent_type: "explore" },
}

/** The run starts a subagent, which reads a file. */
function script({ body }: { body: ModelRequestBody }): Reply {
  const { messages } = body
  const answered = messages.at(-1)?.role === "tool"
  const isChild = JSON.stringify(messages).includes("exploring a software project")
  if (!isChild) return answered ? { text: "It is seven." } : { calls: [task] }
  if (answered) return { text: "The subagent's own words: seven." }
  return { calls: [{ name: "read", arguments: { filePath: "notes.txt" } }] }
}

const options = { files: { "notes.txt": "seven\n" }, script }

test("shows a subagent's calls indented in text mode, and its text not as the answer", async () => {
  const machine = await createMachine(options)
  const run = await machine.run(["run", "which number?"])
  expect(run.stdout).toBe("It is seven.\n")
  expect(run.stderr).toMatch(/^· task find the number$/m)
  expect(run.stderr).toMatch(/^ {2}explore › ✓ read notes\.txt · 1 line$/m)
  expect(run.stderr).toMatch(/^✓ task find the number · explore · 1 call/m)
  expect(run.stderr.match(/^done/gm)).toHaveLength(1)
})

test("prints a subagent's events among the others in JSON mode, and one run.completed at the end", async () => {
  const machine = await createMachine(options)
  const events = eventsOf(await machine.run(["run", "--format", "json", "which number?"]))
  const created = events.flatMap((event) => (event.type === "session.created" ? [event.session] : []))
  expect(created).toMatchObject([{ agent: "build" }, { agent: "explore", parentID: created[0]?.id }])
  expect(events.filter(({ type }) => type === "run.completed")).toEqual([events.at(-1)])
  expect(events.at(-1)).toMatchObject({ sessionID: created[0]?.id, text: "It is seven." })
})

test.skipIf(!hasTmux)("names the subagent that asks in a question at a terminal (needs tmux)", async () => {
  const machine = await createMachine({
    script: (request) =>
      JSON.stringify(request.body.messages).includes("exploring a software project") &&
      request.body.messages.at(-1)?.role !== "tool"
        ? { calls: [{ name: "bash", arguments: { command: "node -p 6+1" } }] }
        : script(request),
  })
  const terminal = await openTerminal(machine)
  await terminal.tackle("run", "which number?")
  expect(await terminal.sees(/give a reason/)).toMatch(
    /\? bash \(the subagent explore asks\)\n {4}node -p 6\+1/,
  )
  await terminal.press("y")
  expect(await terminal.sees("[exit 0]")).toMatch(/explore › ✓ bash node -p 6\+1 · exit 0/)
})
