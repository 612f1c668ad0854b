import type { Component, TUI } from "@earendil-works/pi-tui"
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest"
import { createPicker, type PickerItem, type PickerOptions, pick } from "../../src/tui/picker.ts"
import { pickGrant } from "../../src/tui/pickers.ts"
import type { Shell } from "../../src/tui/shell.ts"
import { keys, rendered, theme } from "./components.ts"

const fruits: PickerItem<string>[] = [
  { value: "a", label: "apple", detail: "red and green" },
  { value: "b", label: "banana", detail: "yellow", isCurrent: true },
  { value: "c", label: "cherry" },
]

function open(more: Partial<PickerOptions<string>> = {}) {
  const calls: string[] = []
  const picker = createPicker<string>({
    ...{ title: "Fruit", theme, items: fruits, rows: () => 12, requestRender() {} },
    onChoose: (value) => calls.push(`chose ${value}`),
    onCancel: () => calls.push("cancelled"),
    ...more,
  })
  const press = (...inputs: string[]) => {
    for (const data of inputs) picker.handleInput?.(data)
  }
  return { picker, calls, press }
}

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }))
afterEach(() => void vi.useRealTimers())

describe("the picker", () => {
  test.each([80, 40, 20])("shows its entries and marks the current one at %i columns", (width) => {
    const text = rendered(open().picker, width)
    expect(text).toMatch(/ {2}apple[\s\S]*❯ banana ✓[\s\S]* {2}cherry/)
  })

  test("filters by typed letters and chooses with Enter", () => {
    const { picker, calls, press } = open()
    press(..."chy")
    expect(rendered(picker)).toContain("❯ cherry")
    expect(rendered(picker)).not.toContain("apple")
    press(keys.enter)
    expect(calls).toEqual(["chose c"])
  })

  test("chooses nothing if nothing is found, and closes with Escape", () => {
    const { picker, calls, press } = open()
    press(..."zzz", keys.enter)
    expect(rendered(picker)).toContain("Nothing found.")
    expect(calls).toEqual([])
    press(keys.escape)
    expect(calls).toEqual(["cancelled"])
  })

  test("moves with the arrow keys, and wraps around at both ends", () => {
    const { calls, press } = open()
    press(keys.down, keys.down, keys.enter, keys.up, keys.enter)
    expect(calls).toEqual(["chose a", "chose c"])
  })

  test("searches after a pause, shows excerpts, and ignores an earlier result that arrives late", async () => {
    const results = new Map<string, PromiseWithResolvers<PickerItem<string>[]>>()
    const { picker, press } = open({
      search(query) {
        results.set(query, Promise.withResolvers())
        return results.get(query)?.promise ?? Promise.resolve([])
      },
    })
    press(..."ab")
    expect([...results.keys()]).toEqual([])
    vi.advanceTimersByTime(1_000)
    press("c")
    vi.advanceTimersByTime(1_000)
    expect([...results.keys()]).toEqual(["ab", "abc"])
    results.get("abc")?.resolve([{ value: "x", label: "found", excerpt: "the text around abc" }])
    results.get("ab")?.resolve([{ value: "y", label: "old" }])
    await vi.waitFor(() => expect(rendered(picker)).toMatch(/❯ found\n {4}the text around abc/))
    expect(rendered(picker)).not.toContain("old")
  })

  test("says why a search failed", async () => {
    const { picker, press } = open({ search: () => Promise.reject(new Error("no answer")) })
    press("x")
    vi.advanceTimersByTime(1_000)
    await vi.waitFor(() => expect(rendered(picker)).toContain("no answer"))
  })

  test("has more actions for the entry with the focus", () => {
    const { picker, calls, press } = open({
      actions: [
        { key: "ctrl+x", label: "Ctrl+X removes", run: (value) => calls.push(`removed ${value}`) },
        { key: "ctrl+r", label: "Ctrl+R shouts", run: (_, picker) => picker.notify("Hey!") },
      ],
    })
    press(keys.down, "\u0018")
    expect(calls).toEqual(["removed c"])
    picker.setItems(fruits.slice(0, 2))
    press(keys.enter)
    expect(calls).toEqual(["removed c", "chose b"])
    expect(rendered(picker)).toContain("Ctrl+X removes · Ctrl+R shouts")
    press("\u0012")
    expect(rendered(picker)).toContain("Hey!")
    press(keys.down)
    expect(rendered(picker)).not.toContain("Hey!")
  })

  test("shows a preview of the entry with the focus, and not of one that the user left", async () => {
    const { picker, press } = open({
      rows: () => 24,
      preview: async (value) =>
        value === "c" ? Promise.reject(new Error("no preview")) : [`about ${value}`],
    })
    const height = rendered(picker).split("\n").length
    press(keys.down, keys.up, keys.up)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(rendered(picker)).toContain("about a")
    expect(rendered(picker)).not.toContain("about b")
    press(keys.up)
    expect(rendered(picker)).not.toContain("about a")
    await vi.advanceTimersByTimeAsync(1_000)
    expect(rendered(picker)).toContain("no preview")
    expect(rendered(picker).split("\n")).toHaveLength(height)
  })

  test("stays within its height with many entries, and shows the one with the focus", () => {
    const items = Array.from({ length: 200 }, (_, index) => ({ value: `${index}`, label: `entry ${index}` }))
    const { picker, press } = open({ items })
    for (let page = 0; page < 15; page++) press(keys.pageDown)
    expect(rendered(picker)).toContain("❯ entry 150")
    expect(rendered(picker).split("\n").length).toBeLessThanOrEqual(12)
  })

  test("is an overlay until the user chooses", async () => {
    const hide = vi.fn()
    let overlay: Component | undefined
    const tui = {
      terminal: { rows: 24, columns: 80 },
      requestRender() {},
      showOverlay(component: Component) {
        overlay = component
        return { hide }
      },
    } as unknown as TUI
    const chosen = pick(tui, { title: "Fruit", theme, items: fruits })
    overlay?.handleInput?.(keys.enter)
    expect(await chosen).toBe("b")
    expect(hide).toHaveBeenCalledOnce()
  })
})

test("the list of grants says in which sessions each grant applies", async () => {
  let shown: Component | undefined
  const showOverlay = (component: Component) => {
    shown = component
    return { hide() {} }
  }
  const grant = (pattern: string, scope: string, sessionID?: string) => ({
    ...{ id: pattern, permission: "bash", pattern, scope, sessionID, time: { created: 0 } },
  })
  const grants = async () => [
    grant("a *", "project"),
    grant("b *", "session", "ses_1"),
    grant("c *", "session", "ses_2"),
  ]
  const tui = { terminal: { rows: 30 }, requestRender() {}, showOverlay }
  const parents: Record<string, string> = { ses_4: "ses_3", ses_3: "ses_1" }
  const get = async (id: string) => ({ info: async () => ({ parentID: parents[id] }) })
  const api = { grants, sessions: { get } }
  // The grants of a subagent's subagent apply to all sessions up to the root.
  for (const id of ["ses_1", "ses_4"]) {
    const state = { session: { parentID: parents[id] } }
    void pickGrant({ tui, theme, api, session: { id }, state } as unknown as Shell)
    await new Promise(setImmediate)
    expect(shown ? rendered(shown) : "", id).toMatch(
      /a \* {2}in this project, .*\n.*b \* {2}in this session, .*\n.*c \* {2}in another session, /,
    )
  }
})
