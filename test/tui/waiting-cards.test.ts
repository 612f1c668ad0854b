import { afterEach, beforeEach, describe, expect, test, vi } from "vitest"
import type { PermissionReply } from "../../src/schema/permission.ts"
import { quietMs } from "../../src/tui/card-parts.ts"
import { createCards } from "../../src/tui/waiting-cards.ts"
import { settleMs } from "../../src/view/decision.ts"
import { bashRequest, cardTimers, keys, pause, theme } from "./components.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: [...cardTimers] }))
afterEach(() => void vi.useRealTimers())

/** Shows a card, as the interface does: each key goes to the card if it is active, and otherwise to the editor. */
function open({ draft = "", sent = "", typed = "" } = {}) {
  const editor: string[] = draft === "" ? [] : [draft]
  const replies: PermissionReply[] = []
  let isCovered = false
  const api = { reply: async (_id: string, reply: PermissionReply) => void replies.push(reply) }
  const cards = createCards({
    api: api as never,
    theme: () => theme,
    rows: () => 20,
    editor: () => ({
      text: () => editor.join(""),
      take: () => ({ text: editor.splice(0).join(""), files: [] }),
      get isEmpty() {
        return editor.length === 0
      },
    }),
    isCovered: () => isCovered,
    onFocusChange() {},
    onEarlyKey: (data) => editor.push(data),
    onProblem() {},
    requestRender() {},
  })
  const show = (...ids: string[]) => {
    const requests = ids.map((id) => bashRequest("npm test", { id }))
    cards.update({ requests, questions: [], worktree: "/work" })
    cards.component.render(80)
  }
  const press = (...inputs: string[]) => {
    for (const data of inputs) {
      if (cards.drops(data) || isCovered) continue
      if (cards.active) cards.active.handleInput?.(data)
      else editor.push(data)
    }
  }
  const cover = (value: boolean) => {
    isCovered = value
  }
  press(...sent)
  editor.splice(0, sent.length)
  press(...typed)
  show("per_1")
  return { cards, editor, replies, show, press, cover }
}

describe("keys for a card", () => {
  test.each([
    { name: "a letter", pressed: ["y"] },
    { name: "a word", pressed: [..."yes", keys.enter] },
    { name: "the keys that move the focus", pressed: [keys.up, keys.enter] },
    { name: "keys of other meanings", pressed: [keys.tab, keys.backspace, "?", "/", "!"] },
  ])("do not reach the empty editor before the card accepts them: $name", ({ pressed }) => {
    const { editor, replies, press } = open()
    press(...pressed)
    vi.advanceTimersByTime(10_000)
    expect({ editor, replies }).toEqual({ editor: [], replies: [] })
    press("y")
    vi.advanceTimersByTime(settleMs)
    expect(replies).toEqual([{ reply: "once" }])
  })

  test("reach the editor while the user is writing there", () => {
    const { editor, press } = open({ draft: "fix" })
    press(..." it")
    expect(editor.join("")).toBe("fix it")
  })

  test.each([
    { typed: "y", kept: "" },
    { typed: "n", sent: "work", kept: "" },
    { typed: "yes, fix", kept: "yes, fix it" },
    { typed: "f", kept: "f it" },
  ])("include one that the user typed a moment before the card: $typed", ({ kept, ...keysBefore }) => {
    const { editor, press } = open(keysBefore)
    press(..." it")
    expect(editor.join("")).toBe(kept)
  })

  test("do not include an earlier letter in the editor", () => {
    const { editor, show, press } = open()
    show()
    pause()
    press("y")
    pause()
    show("per_2")
    expect(editor).toEqual(["y"])
  })

  test("do not include pasted text and Escape", () => {
    const { editor, press } = open()
    press(keys.paste("some text"), keys.escape, "y")
    expect(editor).toEqual([keys.paste("some text"), keys.escape])
  })

  test("do not reach the editor when the answer has been given", () => {
    const { editor, replies, show, press } = open()
    pause()
    press("y")
    vi.advanceTimersByTime(settleMs)
    expect(replies).toEqual([{ reply: "once" }])
    press("e")
    show()
    press("s", "s")
    expect(editor).toEqual([])
    pause()
    press("h", "i")
    expect(editor).toEqual(["h", "i"])
  })

  test("do not reach the editor when the request was answered elsewhere", () => {
    const { cards, editor, show, press } = open()
    pause()
    show()
    expect(cards.active).toBeUndefined()
    press("y", keys.enter)
    expect(editor).toEqual([])
    pause()
    press("h")
    expect(editor).toEqual(["h"])
  })

  test("do not include other text after the answer", () => {
    const { editor, show, press } = open()
    pause()
    press("y")
    vi.advanceTimersByTime(settleMs)
    show()
    press(..."fix it")
    expect(editor.join("")).toBe("fix it")
  })

  test("do not include the first key after an answer that Enter completed", () => {
    const { editor, show, press } = open()
    pause()
    press("n", keys.enter)
    show()
    press("n")
    expect(editor).toEqual(["n"])
  })

  test("do not include keys that the user typed into a picker above the card", () => {
    const { editor, replies, press, cover } = open()
    cover(true)
    pause()
    press(..."yes", keys.enter)
    cover(false)
    press("y")
    vi.advanceTimersByTime(quietMs - 1)
    expect({ editor, replies }).toEqual({ editor: [], replies: [] })
  })
})
