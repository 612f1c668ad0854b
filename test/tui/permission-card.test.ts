import { KeybindingsManager, matchesKey, setKeybindings, TUI_KEYBINDINGS } from "@earendil-works/pi-tui"
import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest"
import type { PermissionReply, PermissionRequest } from "../../src/schema/permission.ts"
import { quietMs } from "../../src/tui/card-parts.ts"
import { createPermissionCard, type PermissionCardOptions } from "../../src/tui/permission-card.ts"
import { settleMs } from "../../src/view/decision.ts"
import { runs } from "../runs.ts"
import { bashRequest, cardTimers, keys, pause, rendered, theme } from "./components.ts"

function open(request: PermissionRequest = bashRequest("npm test"), rows = 20) {
  const replies: PermissionReply[] = []
  const early: string[] = []
  const options: PermissionCardOptions = {
    request,
    worktree: "/work",
    theme,
    rows: () => rows,
    onReply: (reply) => replies.push(reply),
    onEarlyKey: (data) => early.push(data),
    requestRender() {},
  }
  const card = createPermissionCard(options)
  card.render(80)
  const press = (...inputs: string[]) => {
    for (const data of inputs) card.handleInput?.(data)
  }
  return { card, options, replies, early, press }
}

/** Opens a card that accepts keys. */
function ready(request?: PermissionRequest) {
  const opened = open(request)
  pause()
  return opened
}

beforeEach(() => void vi.useFakeTimers({ toFake: [...cardTimers] }))
afterEach(() => void vi.useRealTimers())

describe("the permission card", () => {
  test.each([80, 40])("shows the command, the rule and the choices at %i columns", (width) => {
    const { card } = ready()
    card.setWaiting(2)
    const text = rendered(card, width)
    expect(text.indexOf("npm test")).toBeLessThan(text.indexOf("asks because"))
    expect(text.indexOf("asks because")).toBeLessThan(text.indexOf("1 y  yes, once"))
    expect(text).toContain("2 more waiting")
    expect(text).toContain('"always" allows bash: npm *')
    expect(text).toMatch(/❯ 4 n {2}no$/m)
  })

  test("keeps the command visible on a low screen, with several choices on a line", () => {
    const { card } = open(bashRequest("npm test"), 10)
    pause()
    const text = rendered(card, 40)
    expect(text.split("\n").length).toBeLessThanOrEqual(10)
    expect(text).toMatch(/^── \? bash ─+\n {2}npm test\n/)
    expect(text).toContain("  y yes    s session    p project\n❯ n no    e no, reason")
  })

  test.each([
    { typed: "y", reply: { reply: "once" } },
    { typed: "1", reply: { reply: "once" } },
    { typed: "s", reply: { reply: "always", scope: "session" } },
    { typed: "n", reply: { reply: "reject" } },
    { typed: "4", reply: { reply: "reject" } },
  ])("replies to $typed after a pause", ({ typed, reply }) => {
    const { replies, press } = ready()
    press(typed)
    expect(replies).toEqual([])
    vi.advanceTimersByTime(settleMs)
    expect(replies).toEqual([reply])
  })

  test("does not take the beginning of another word for an answer", () => {
    const { card, replies, press } = ready()
    press(..."sorry")
    vi.advanceTimersByTime(10_000)
    expect(replies).toEqual([])
    expect(rendered(card)).toContain("sorry: not a choice")
    press(keys.enter)
    expect(replies).toEqual([])
    press(..."yes", keys.enter)
    expect(replies).toEqual([{ reply: "once" }])
  })

  test("has its focus on the safe choice, and rejects with Escape", () => {
    const first = ready()
    first.press(keys.enter)
    expect(first.replies).toEqual([{ reply: "reject" }])
    const second = ready()
    second.press(keys.up, keys.up, keys.up, keys.escape)
    expect(second.replies).toEqual([{ reply: "reject" }])
  })

  test("rejects with a reason, which may follow the letter at once", () => {
    const { replies, press } = ready()
    press(..."euse yarn", keys.enter)
    expect(replies).toEqual([{ reply: "reject", message: "use yarn" }])
  })

  test("accepts pasted text as the reason", () => {
    const { replies, early, press } = ready()
    press("e", keys.paste("use yarn"), keys.enter)
    expect(early).toEqual([])
    expect(replies).toEqual([{ reply: "reject", message: "use yarn" }])
  })

  test("shows the pattern of a project grant, which may only become narrower", () => {
    const { card, replies, press } = ready()
    press("p")
    vi.advanceTimersByTime(settleMs)
    expect(rendered(card)).toContain("> npm *")
    expect(replies).toEqual([])
    press(keys.backspace, keys.backspace, keys.backspace, keys.backspace, keys.backspace, "*", keys.enter)
    expect(rendered(card)).toContain("must not allow more than npm *")
    expect(replies).toEqual([])
    press(keys.backspace, ..."npm test", keys.enter)
    expect(replies).toEqual([{ reply: "always", scope: "project", patterns: ["npm test"] }])
  })

  test("names the configured keys of its text fields, and omits a missing key", () => {
    onTestFinished(() => setKeybindings(new KeybindingsManager(TUI_KEYBINDINGS)))
    setKeybindings(
      new KeybindingsManager(TUI_KEYBINDINGS, { "tui.input.submit": "ctrl+s", "tui.select.cancel": [] }),
    )
    const { card, press } = ready()
    press("e")
    expect(rendered(card)).toMatch(/^ {2}Ctrl\+S rejects with this reason$/m)
  })

  test("grants nothing if every pattern is cleared", () => {
    const { card, replies, press } = ready()
    press("p", keys.enter, "\u0015", keys.enter)
    expect(replies).toEqual([])
    expect(rendered(card)).toContain("1 y  yes, once")
  })

  test("does not offer always where the request cannot be granted", () => {
    const { card, replies, press } = ready(bashRequest("npm test", { always: [] }))
    expect(rendered(card)).not.toContain("always, in")
    press("s")
    vi.advanceTimersByTime(settleMs)
    expect(replies).toEqual([])
  })

  test("passes keys on until the user has paused", () => {
    const { card, replies, early, press } = open()
    press("y")
    vi.advanceTimersByTime(quietMs - 1)
    press("y", keys.enter)
    vi.advanceTimersByTime(quietMs - 1)
    expect(early).toEqual(["y", "y", keys.enter])
    vi.advanceTimersByTime(2 + settleMs)
    expect(replies).toEqual([])
    expect(rendered(card)).toContain("❯ 4 n  no")
    press("y", keys.enter)
    expect(replies).toEqual([{ reply: "once" }])
  })

  test("accepts no key until the card has been drawn and the user has paused", () => {
    const early: string[] = []
    const opened = open()
    const card = createPermissionCard({ ...opened.options, onEarlyKey: (data) => early.push(data) })
    vi.advanceTimersByTime(10_000)
    card.handleInput?.("y")
    card.render(80)
    vi.advanceTimersByTime(quietMs - 1)
    card.handleInput?.("y")
    vi.advanceTimersByTime(10_000)
    expect(early).toEqual(["y", "y"])
    expect(opened.replies).toEqual([])
    card.handleInput?.("y")
    vi.advanceTimersByTime(settleMs)
    expect(opened.replies).toEqual([{ reply: "once" }])
  })

  test("accepts no key that arrived while the machine was busy", () => {
    const { replies, early, press } = open()
    vi.advanceTimersToNextTimer()
    // The timer has fired, but input that arrived before it is read only now.
    press("y")
    vi.advanceTimersByTime(quietMs - 1)
    expect(early).toEqual(["y"])
    expect(replies).toEqual([])
  })

  test("ignores pasted text, the focus of the window, and clicks", () => {
    const { card, replies, early, press } = ready()
    press(keys.paste("y"), keys.focusIn, "\u001b[<0;5;5M", "\u001b[<0;5;5m")
    const click = { button: "left" as const, x: 3, y: 5, screenX: 3, screenY: 5, width: 80, height: 20 }
    const held = { shift: false, alt: false, ctrl: false }
    for (const type of ["press", "release", "click"] as const) card.handleMouse?.({ type, ...click, ...held })
    vi.advanceTimersByTime(10_000)
    expect(replies).toEqual([])
    expect(early).toEqual([keys.paste("y")])
  })

  test("scrolls long content inside the card", () => {
    const command = Array.from({ length: 60 }, (_, line) => `echo ${line}`).join("\n")
    const { card, press } = ready(bashRequest(command))
    expect(rendered(card).split("\n").length).toBeLessThanOrEqual(20)
    expect(rendered(card)).toContain("echo 0\n")
    expect(rendered(card)).not.toContain("asks because")
    for (let page = 0; page < 10; page++) press(keys.pageDown)
    expect(rendered(card)).toContain("echo 59\n")
    expect(rendered(card)).toContain("asks because")
    expect(rendered(card)).toContain("1 y  yes, once")
  })

  test("shows invisible characters of the command and of its pattern", () => {
    const { card } = ready(bashRequest("echo a\u202eb", { always: ["echo a\u202eb"] }))
    expect(rendered(card)).toContain("echo a<U+202E>b")
    expect(rendered(card)).toContain('"always" allows bash: echo a<U+202E>b')
  })

  test("accepts no reply after the request was answered elsewhere", () => {
    const { card, replies, early, press } = ready()
    card.showEnd("Answered elsewhere: allowed once.")
    press("y", keys.enter)
    vi.advanceTimersByTime(10_000)
    expect(replies).toEqual([])
    expect(early).toEqual(["y", keys.enter])
    expect(rendered(card)).toContain("Answered elsewhere: allowed once.")
    expect(rendered(card)).not.toContain("yes, once")
  })
})

const approving = new Set(["y", "s", "p", "1", "2", "3"])

describe("no other key approves", () => {
  const special = Object.values(keys).filter((key) => typeof key === "string")
  const anyKey = fc.oneof(
    fc.constantFrom(...special),
    fc.string({ minLength: 1, maxLength: 1 }),
    fc.integer({ min: 0, max: 31 }).map((code) => String.fromCharCode(code)),
    fc.string({ maxLength: 3 }).map((text) => `\u001b[${text}`),
    fc.string({ maxLength: 6 }).map(keys.paste),
  )
  const pauses = fc.constantFrom(0, 50, settleMs, 5_000)

  const isArrow = (key: string) => matchesKey(key, "up") || matchesKey(key, "down")
  test.each([
    {
      title: "without Enter, in any order and with any pause",
      allowed: (key: string) => !approving.has(key.toLowerCase()) && !matchesKey(key, "enter"),
    },
    {
      title: "with Enter, if the focus was not moved and no word was typed",
      allowed: (key: string) => ![...approving, "o"].includes(key.toLowerCase()) && !isArrow(key),
    },
  ])("$title", ({ allowed }) => {
    fc.assert(
      fc.property(fc.array(fc.tuple(anyKey.filter(allowed), pauses), { maxLength: 20 }), (typed) => {
        const { card, replies } = ready()
        for (const [data, pause] of typed) {
          card.handleInput?.(data)
          vi.advanceTimersByTime(pause)
        }
        card.close()
        expect(replies.filter(({ reply }) => reply !== "reject")).toEqual([])
      }),
      { numRuns: runs(300) },
    )
  })

  test("while the user types without a pause", () => {
    fc.assert(
      fc.property(fc.array(anyKey, { maxLength: 30 }), (typed) => {
        const { card, replies } = open()
        for (const data of typed) {
          card.handleInput?.(data)
          vi.advanceTimersByTime(quietMs - 1)
        }
        card.close()
        expect(replies).toEqual([])
      }),
      { numRuns: runs(300) },
    )
  })
})
