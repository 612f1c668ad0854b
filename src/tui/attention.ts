import type { Terminal, TUI } from "@earendil-works/pi-tui"
import type { SessionState } from "../view/session-state.ts"
import { oneLine, visible } from "../view/visible.ts"

/**
 * Updates the terminal's title and progress. Notifies the user of requests, questions and finished runs while another
 * window has the focus.
 */
export interface Attention {
  /** Shows the title and the progress of a state, and notifies the user of the changes since the previous state. */
  update(state: SessionState | undefined): void
  /** Resets the title and the progress. */
  close(): void
}

const focusIn = "\u001b[I"
const focusOut = "\u001b[O"

/**
 * Creates the notifier. It notifies the user only while the terminal reports that its window has no focus. If the
 * terminal does not report focus, the user is never notified.
 */
export function createAttention(tui: TUI): Attention {
  const { terminal } = tui
  let hasFocus = true
  let last: SessionState | undefined
  const stopListening = tui.addInputListener((data) => {
    if (data !== focusIn && data !== focusOut) return undefined
    hasFocus = data === focusIn
    return { consume: true }
  })

  return {
    update(state) {
      const before = last
      last = state
      const title = state?.session.title ?? ""
      if (title !== (before?.session.title ?? "")) terminal.setTitle(titleOf(title))
      const isRunning = state?.isRunning === true
      if (isRunning !== (before?.isRunning === true)) showProgress(terminal, isRunning)
      if (hasFocus || !state || state.session.id !== before?.session.id) return
      const reason = reasonOf(state, before)
      if (reason !== undefined) notify(terminal, reason)
    },
    close() {
      stopListening()
      if (last?.isRunning) showProgress(terminal, false)
      terminal.setTitle("")
    },
  }
}

function titleOf(title: string): string {
  return title === "" ? "tackle" : `tackle: ${oneLine(title, 60)}`
}

/** Returns the text of the notification, or undefined if the user should not be notified. */
function reasonOf(state: SessionState, before: SessionState): string | undefined {
  const waiting = ({ requests, questions }: SessionState) => [...requests, ...questions]
  const known = new Set(waiting(before).map(({ id }) => id))
  if (state.requests.some(({ id }) => !known.has(id))) return "Tackle asks for permission"
  if (state.questions.some(({ id }) => !known.has(id))) return "Tackle asks a question"
  if (before.isRunning && !state.isRunning) return `The run has ended: ${visible(state.session.title)}`
  return undefined
}

/** Sends OSC 9, OSC 777 and a bell, because terminals support different sequences. */
function notify(terminal: Terminal, text: string): void {
  const plain = oneLine(text, 80).replaceAll(";", ",")
  terminal.write(`\u001b]9;${plain}\u0007\u001b]777;notify;Tackle;${plain}\u0007\u0007`)
}

/** Shows in the tab or the task bar whether a run is active (OSC 9;4). */
function showProgress(terminal: Terminal, isActive: boolean): void {
  terminal.write(isActive ? "\u001b]9;4;3;0\u0007" : "\u001b]9;4;0;0\u0007")
}
