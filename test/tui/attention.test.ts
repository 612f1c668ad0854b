import type { TUI } from "@earendil-works/pi-tui"
import { expect, test } from "vitest"
import type { PermissionRequest } from "../../src/schema/permission.ts"
import { createAttention } from "../../src/tui/attention.ts"
import { createSessionState } from "../../src/view/session-state.ts"
import { aSession } from "../suites/records.ts"

/** A terminal that records what is written, and reports its focus. */
function startTerminal() {
  const written: string[] = []
  let listener: (data: string) => unknown = () => undefined
  const tui = {
    terminal: {
      write: (data: string) => written.push(data),
      setTitle: (title: string) => written.push(`title ${title}`),
    },
    addInputListener(given: typeof listener) {
      listener = given
      return () => {}
    },
  } as unknown as TUI
  const attention = createAttention(tui)
  return {
    attention,
    report: (data: string) => listener(data),
    /** Returns what was written since the last call. */
    taken: () => written.splice(0),
  }
}

const idle = createSessionState({ session: aSession("ses_1", { title: "Fix; it\u0007" }) })
const running = { ...idle, isRunning: true }
const request: PermissionRequest = {
  ...{
    id: "per_1",
    sessionID: "ses_1",
    permission: "bash",
    patterns: [],
    always: [],
    rules: [],
    metadata: {},
  },
}

test("shows the title of the session and whether a run is active", () => {
  const { attention, taken } = startTerminal()
  attention.update(idle)
  expect(taken()).toEqual(["title tackle: Fix; it<U+0007>"])
  attention.update(running)
  expect(taken()).toEqual(["\u001b]9;4;3;0\u0007"])
  attention.update(idle)
  expect(taken()).toEqual(["\u001b]9;4;0;0\u0007"])
})

test("notifies a user whose window has no focus of a request and of the end of a run", () => {
  const { attention, report, taken } = startTerminal()
  attention.update(running)
  expect(report("\u001b[O")).toEqual({ consume: true })
  taken()
  attention.update({ ...running, requests: [request] })
  expect(taken().join("")).toContain("]9;Tackle asks for permission\u0007")
  attention.update({ ...running, requests: [request] })
  expect(taken()).toEqual([])
  attention.update(idle)
  const [, message = ""] = taken()
  expect(message).toContain("]777;notify;Tackle;The run has ended: Fix, it<U+0007>\u0007")
})

test("does not notify a user who sees the window", () => {
  const { attention, report, taken } = startTerminal()
  attention.update(running)
  taken()
  attention.update({ ...running, requests: [request] })
  report("\u001b[O")
  report("\u001b[I")
  attention.update({ ...running, requests: [{ ...request, id: "per_2" }] })
  expect(taken()).toEqual([])
  expect(report("x")).toBeUndefined()
})
