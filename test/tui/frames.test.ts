import { visibleWidth } from "@earendil-works/pi-tui"
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest"
import type { SessionApi, TackleApi } from "../../src/client/api.ts"
import type { TackleEvent } from "../../src/event/events.ts"
import type { Message } from "../../src/schema/message.ts"
import type { SessionEvent } from "../../src/session/session-events.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { createApp } from "../../src/tui/app.ts"
import { loadHighlighter } from "../../src/tui/code.ts"
import { loadKeys } from "../../src/tui/keybindings.ts"
import { createScreen } from "../../src/tui/screen.ts"
import { aMessage, aPart, aSession } from "../suites/records.ts"
import { theme } from "./components.ts"
import { type FakeTerminal, fakeTerminal } from "./fake-terminal.ts"

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date", "performance"],
  })
})
afterEach(() => {
  vi.useRealTimers()
})

const session = aSession("ses_1")
const answer: Message = {
  ...{ id: "msg_2", sessionID: "ses_1", role: "assistant", parentID: "msg_1", agent: "build", cost: 0 },
  ...{ model: { providerID: "p", modelID: "m" }, time: { created: 1 }, path: { cwd: "/w", root: "/w" } },
  tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
}

/** Shows a session whose events the test sends. */
async function showSession(terminal: FakeTerminal, keysPath = "/nowhere/keybindings.json") {
  let wake = Promise.withResolvers<SessionEvent>()
  let status = "idle"
  async function* events({ signal }: { signal?: AbortSignal } = {}): AsyncIterableIterator<SessionEvent> {
    while (!signal?.aborted) {
      const event = await wake.promise
      wake = Promise.withResolvers()
      yield event
    }
  }
  const handle = {
    id: session.id,
    info: () => session,
    messages: async () => [],
    inputs: { list: async () => [] },
    todos: async () => [],
    sequence: async () => 0,
    events,
  } as unknown as SessionApi
  const api = {
    subscribe: () => () => {},
    pendingRequests: () => [],
    questions: { pending: () => [] },
    sessions: { status: async () => status },
    project: async () => ({ sandbox: { works: false, reason: "" } }),
  } as unknown as TackleApi
  const screen = createScreen(terminal, { fullscreen: false })
  const { keys } = await loadKeys(keysPath)
  const app = createApp({
    ...{ api, screen, theme, keys, env: {}, session: handle, defaults: {}, welcome: ["Tackle"] },
    status: { directory: "/w" },
    history: { list: () => [], add() {} },
    themes: { list: async () => [], chosen: async () => undefined, choose: async () => {} },
    onLeave() {},
  })
  screen.start()
  await app.open(handle)
  return {
    app,
    /** Sends an event, and lets `ms` pass. */
    async send(event: Record<string, unknown>, ms = 40) {
      if (event.type === "message.created") status = "running"
      if (event.type === "run.completed") status = "idle"
      wake.resolve({ sessionID: session.id, time: 1, ...event } as unknown as TackleEvent as SessionEvent)
      await vi.advanceTimersByTimeAsync(ms)
    },
  }
}

type Shown = Awaited<ReturnType<typeof showSession>>

/** Streams an answer of several paragraphs. */
async function stream(shown: Shown, updates: number): Promise<void> {
  await shown.send({ type: "message.created", message: aMessage("msg_1", "ses_1") })
  await shown.send({ type: "part.updated", part: aPart("prt_1", "msg_1", "ses_1", "Count.") })
  await shown.send({ type: "message.created", message: answer })
  await shown.send({ type: "part.updated", part: aPart("prt_2", "msg_2", "ses_1", "") })
  for (let index = 0; index < updates; index += 1) {
    const delta = `${"漢字 word ".repeat(index % 4)}${index}${index % 50 === 49 ? "\n\n" : " "}`
    await shown.send({ type: "part.delta", partID: "prt_2", field: "text", delta })
  }
  await shown.send({ type: "run.completed", status: "completed", durationMs: 40 * updates })
}

/** Returns what was written outside of synchronized frames, without sequences that print nothing. */
function outsideFrames(written: string): string {
  return (
    written
      // biome-ignore lint/suspicious/noControlCharactersInRegex: terminals expect these characters
      .replaceAll(/\x1b\[\?2026h[\s\S]*?\x1b\[\?2026l/g, "")
      // biome-ignore lint/suspicious/noControlCharactersInRegex: terminals expect these characters
      .replaceAll(/\x1b\][^\x07]*\x07|\x1b\[[?>]?[\d;]*[A-Za-z]/g, "")
  )
}

test("a stream of 1,000 updates clears nothing, stays in frames, and fits the screen", async () => {
  const terminal = fakeTerminal()
  const shown = await showSession(terminal)
  await stream(shown, 1_000)
  const written = terminal.writes.join("")
  expect(written).toContain("999")
  for (const clear of ["\u001b[2J", "\u001b[3J"]) expect(written).not.toContain(clear)
  expect(outsideFrames(written)).toBe("")
  // biome-ignore lint/suspicious/noControlCharactersInRegex: terminals expect these characters
  for (const line of written.split(/\r\n|\x1b\[2K|\x1b\[\?2026[hl]/))
    expect(visibleWidth(line.replaceAll("\r", ""))).toBeLessThanOrEqual(100)
  expect(written.length).toBeLessThan(1_000_000)
  shown.app.close()
})

test("the hints name the keys of the keybindings file", async () => {
  const bindings = {
    ...{ interrupt: "ctrl+x", queue: [], clear: "ctrl+q" },
    ...{ "input.submit": "ctrl+s", "editor.cursorUp": "ctrl+p" },
  }
  const directory = await temporaryProject({ "keys.json": JSON.stringify(bindings) })
  onTestFinished(() => directory.remove())
  onTestFinished(async () => void (await loadKeys("/nowhere/keybindings.json")))
  const terminal = fakeTerminal()
  const shown = await showSession(terminal, directory.path("keys.json"))
  await shown.send({ type: "message.created", message: aMessage("msg_1", "ses_1") })
  terminal.press("x")
  terminal.press("\u0011")
  await vi.advanceTimersByTimeAsync(100)
  const written = terminal.writes.join("")
  expect(written).toContain("Ctrl+X interrupts")
  expect(written).toContain("Ctrl+S steers")
  expect(written).toContain("Ctrl+P restores the text. Press Ctrl+Q again to quit.")
  expect(written).not.toContain("queues")
  await shown.app.send("/keys")
  await vi.advanceTimersByTimeAsync(100)
  expect(terminal.writes.join("")).toContain("Ctrl+S sends. Type / for commands")
  shown.app.close()
})

test("a stream of code that is longer than the screen gets its colors and clears nothing", async () => {
  await loadHighlighter()
  const terminal = fakeTerminal()
  const shown = await showSession(terminal)
  await shown.send({ type: "message.created", message: answer })
  await shown.send({ type: "part.updated", part: aPart("prt_2", "msg_2", "ses_1", "") })
  const code = Array.from({ length: 200 }, (_, line) => `const v${line} = "text" // note\n`).join("")
  for (const delta of `\`\`\`ts\n${code}\`\`\`\n\nEnd.`.match(/[\s\S]{1,30}/g) ?? [])
    await shown.send({ type: "part.delta", partID: "prt_2", field: "text", delta })
  await vi.advanceTimersByTimeAsync(100)
  const written = terminal.writes.join("")
  expect(written).toContain(theme.keyword("const"))
  expect(written).toContain("End.")
  expect(written).not.toContain("\u001b[2J")
  shown.app.close()
})

test("an idle interface writes nothing and has no timer, before and after a run", async () => {
  const terminal = fakeTerminal()
  const shown = await showSession(terminal)
  for (const work of [async () => {}, () => stream(shown, 100)]) {
    await work()
    await vi.advanceTimersByTimeAsync(5_000)
    const before = terminal.writes.length
    expect(vi.getTimerCount()).toBe(0)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(terminal.writes.length).toBe(before)
  }
  shown.app.close()
})

test("the end of a run of more than 10 seconds shows its duration", async () => {
  const terminal = fakeTerminal()
  const shown = await showSession(terminal)
  await stream(shown, 20)
  expect(terminal.writes.join("")).not.toContain("done ·")
  await stream(shown, 1_600)
  expect(terminal.writes.join("")).toContain("✓ done · 1 min 4 s")
  shown.app.close()
})

test("the to-do list is visible during a run, and its current entry after it", async () => {
  const terminal = fakeTerminal()
  const shown = await showSession(terminal)
  const todo = (content: string, status: string) => ({ content, status, priority: "medium" })
  const todos = [todo("read", "completed"), todo("write", "in_progress"), todo("test", "pending")]
  await shown.send({ type: "message.created", message: answer })
  await shown.send({ type: "todo.updated", todos })
  const written = terminal.writes.join("")
  for (const line of ["☑ read", "▸ write", "☐ test"]) expect(written).toContain(line)
  terminal.writes.length = 0
  await shown.send({ type: "run.completed", status: "completed", durationMs: 1 })
  const after = terminal.writes.join("")
  expect(after).toContain("▸ write")
  expect(after).toContain("1 of 3 done")
  expect(after).not.toContain("☐ test")
  shown.app.close()
})

test("changes of a session are drawn at most 30 times per second, and a key press immediately", async () => {
  const terminal = fakeTerminal()
  const shown = await showSession(terminal)
  await shown.send({ type: "message.created", message: answer })
  await shown.send({ type: "part.updated", part: aPart("prt_2", "msg_2", "ses_1", "") })
  await vi.advanceTimersByTimeAsync(500)
  const frames = () => terminal.writes.join("").split("\u001b[?2026h").length - 1
  let before = frames()
  for (let index = 0; index < 200; index += 1)
    await shown.send({ type: "part.delta", partID: "prt_2", field: "text", delta: "word " }, 5)
  // One more frame each second shows the duration of the run.
  expect(frames() - before).toBeLessThanOrEqual(32)
  before = frames()
  terminal.press("x")
  await vi.advanceTimersByTimeAsync(0)
  expect(frames() - before).toBe(1)
  shown.app.close()
})

test("shows only the session that was opened last, also if an earlier one loads longer", async () => {
  const shown = await showSession(fakeTerminal())
  const loading = Promise.withResolvers<number>()
  const signals: (AbortSignal | undefined)[] = []
  const sessionOf = (id: string, sequence: () => Promise<number>) =>
    ({
      id,
      info: () => aSession(id),
      messages: async () => [],
      inputs: { list: async () => [] },
      todos: async () => [],
      sequence,
      async *events({ signal }: { signal?: AbortSignal } = {}) {
        signals.push(signal)
        await new Promise((resolve) => signal?.addEventListener("abort", resolve))
      },
    }) as unknown as SessionApi
  const slow = shown.app.open(sessionOf("ses_slow", () => loading.promise))
  await shown.app.open(sessionOf("ses_2", async () => 0))
  loading.resolve(0)
  await slow
  expect(shown.app.session?.id).toBe("ses_2")
  await vi.advanceTimersByTimeAsync(40)
  // The stream of the slow session has ended, and the other one continues.
  expect(signals.map((signal) => signal?.aborted)).toEqual([false, true])
  shown.app.close()
  expect(signals.map((signal) => signal?.aborted)).toEqual([true, true])
})
