import { expect, test } from "vitest"
import type { Input } from "../../src/schema/input.ts"
import { loadKeys } from "../../src/tui/keybindings.ts"
import { createPanel } from "../../src/tui/panel.ts"
import { createWaitingInputs, renderQueue } from "../../src/tui/queue.ts"
import { startEngine } from "../session/engine.ts"
import { keys, rendered, theme } from "./components.ts"

function input(text: string, more: Partial<Input> = {}): Input {
  return {
    ...{ id: `inp_${text}`, sessionID: "ses_1", seq: 1, delivery: "queue", state: "pending", position: 1 },
    ...{ text, digest: "", time: { created: 0 } },
    ...more,
  }
}

test.each([80, 40])("shows how each pending input is delivered at %i columns", async (width) => {
  const { keys: bindings } = await loadKeys("/does/not/exist")
  const inputs = [
    input("now", { delivery: "steer" }),
    input(`later ${"and later ".repeat(20)}`),
    input("kept", { held: true, problem: "no model" }),
  ]
  const show = (given: Input[], editing?: string) =>
    rendered(
      {
        render: (columns) => renderQueue(given, { width: columns, theme, keys: bindings, editing }),
        invalidate() {},
      },
      width,
    )
  expect(show(inputs)).toMatch(/› next: now\n› queued: later.*\n› held: kept no model\n {2}Alt\+↑ edits/)
  expect(show(inputs, "inp_now")).toContain("› editing: now")
  expect(show([input("later", { paused: true })])).toMatch(/› queued, paused: later\n {2}The queue is paused/)
  expect(show([])).toBe("")
})

test("holds an input while it is edited, and delivers it as it was after a release", async () => {
  await using engine = await startEngine(() => ({ text: "done", delayMs: 400 }))
  const session = await engine.tackle.sessions.create()
  await session.send("first")
  const { id } = await session.send("the zebra", { delivery: "queue" })
  const waiting = createWaitingInputs()
  const [second] = (await session.inputs.list()).filter((each) => each.id === id)
  expect(second && (await waiting.take(session, second))).toEqual({ text: "the zebra", files: [] })
  await session.wait()
  expect(await session.inputs.list()).toMatchObject([{ id, held: true }])
  await waiting.release(session)
  await session.wait()
  expect(await session.inputs.list()).toEqual([])
  expect(JSON.stringify(engine.server.requests.at(-1)?.body)).toContain("the zebra")
  // The input was delivered in the meantime.
  expect(second && (await waiting.take(session, second))).toBeUndefined()
  expect(waiting.editing).toBeUndefined()
})

test("withdraws an input whose new text is sent instead", async () => {
  await using engine = await startEngine(() => ({ text: "done", delayMs: 200 }))
  const session = await engine.tackle.sessions.create()
  await session.send("first")
  const { id } = await session.send("the zebra", { delivery: "queue" })
  const waiting = createWaitingInputs()
  const [second] = (await session.inputs.list()).filter((each) => each.id === id)
  if (second) await waiting.take(session, second)
  await waiting.replace(session)
  expect((await session.inputs.list()).map((each) => each.id)).not.toContain(id)
  await session.wait()
  expect(JSON.stringify(engine.server.requests.map(({ body }) => body))).not.toContain("the zebra")
})

test.each([80, 40])("shows a long text in a panel of limited height at %i columns", (width) => {
  const panel = createPanel({ theme, rows: () => 6, closeKey: "F9" })
  expect(rendered(panel, width)).toBe("")
  panel.show("Output", Array.from({ length: 30 }, (_, line) => `line ${line} ${"x".repeat(60)}`).join("\n"))
  expect(rendered(panel, width)).toContain("line 0")
  expect(rendered(panel, width)).toContain("F9 closes")
  expect(rendered(panel, width).split("\n").length).toBeLessThanOrEqual(7)
  for (let page = 0; page < 20; page++) panel.handleInput?.(keys.pageDown)
  expect(rendered(panel, width)).toContain("line 29")
  panel.handleInput?.(keys.escape)
  expect(panel.isOpen).toBe(false)
})
