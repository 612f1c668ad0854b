import { createInterface, type Key } from "node:readline"
import { stripVTControlCharacters } from "node:util"
import { AbortedError } from "../../util/abort.ts"
import { type Choice, createDecision, isPrintable, settleMs } from "../../view/decision.ts"
import { columns, oneLine } from "../../view/visible.ts"
import { style } from "../view/style.ts"

/** A question that the user answers in the terminal. */
export interface DecisionOptions<T> {
  message: string
  choices: readonly Choice<T>[]
  /** Value of the choice that initially has the focus. Escape and Ctrl+D select this choice. */
  safe: T
}

/** Time in milliseconds for which input is discarded before the question is shown. */
const discardMs = 50

const enablePaste = "\u001b[?2004h"
const disablePaste = "\u001b[?2004l"
const hideCursor = "\u001b[?25l"
const showCursor = "\u001b[?25h"

/**
 * Asks the user to decide. A letter or digit selects its choice, and Enter selects the choice with the focus. A typed
 * word selects a choice only if it is one of the choice's `words`. Input typed before the question and pasted text are
 * ignored. Throws `AbortedError` if the user presses Ctrl+C, the input ends or the signal aborts. Always restores the
 * terminal.
 */
export async function decide<T>(
  { message, choices, safe }: DecisionOptions<T>,
  signal: AbortSignal = new AbortController().signal,
): Promise<T> {
  const { stdin: input, stderr: output } = process
  const redraws = process.env.TERM !== "dumb"
  const decision = createDecision(choices, safe)
  let shown: string[] = []
  let pasting = false
  let settling: NodeJS.Timeout | undefined

  function draw(): void {
    if (!redraws && shown.length > 0) return
    erase()
    shown = [style.bold(message), ...choices.map(line), style.dim(`  ${instruction()}`)]
    output.write(`${shown.join("\n")}\n`)
  }

  function line({ key, digit, label, hint }: Choice<T>, index: number): string {
    const shownLabel = oneLine(hint === undefined ? label : `${label} (${hint})`, width() - 7)
    const text = `${digit} ${key}  ${shownLabel}`
    return index === decision.focus ? `${style.cyan("❯")} ${text}` : style.dim(`  ${text}`)
  }

  function instruction(): string {
    const { typed, named } = decision
    if (!redraws) return "Press a letter or digit."
    if (typed.length < 2) return oneLine("Press a letter or digit, or ↑ ↓ and Enter.", width() - 2)
    const known = named === undefined ? "not a choice" : "press Enter"
    return oneLine(`${typed}: ${known}`, width() - 2)
  }

  function width(): number {
    return Math.max(20, (output.columns || 80) - 1)
  }

  function erase(): void {
    if (!redraws || shown.length === 0) return
    const rows = shown.map(
      (text) => Math.ceil(columns(stripVTControlCharacters(text)) / Math.max(1, output.columns || 80)) || 1,
    )
    output.write(`\u001b[${rows.reduce((sum, each) => sum + each, 0)}A\r\u001b[J`)
  }

  const decided = Promise.withResolvers<T>()
  let isDecided = false

  function select(choice: Choice<T> | undefined): void {
    if (!choice || isDecided) return
    isDecided = true
    erase()
    output.write(`${message} ${style.bold(choice.label)}\n`)
    shown = []
    decided.resolve(choice.value)
  }

  function abort(): void {
    // Ctrl+C also closes `lines`.
    if (isDecided) return
    isDecided = true
    erase()
    output.write(`${message}\n`)
    shown = []
    decided.reject(new AbortedError("Interrupted while waiting for an answer."))
  }

  function press(text: string | undefined, { name, ctrl, meta }: Key): void {
    clearTimeout(settling)
    if (name === "paste-start" || name === "paste-end") pasting = name === "paste-start"
    else if (ctrl && name === "c") abort()
    else if (pasting || shown.length === 0) return
    else if (name === "escape" || (ctrl && name === "d")) select(choices.find(({ value }) => value === safe))
    else if (name === "return" || name === "enter") select(decision.confirm())
    // Without redrawing, the user would not see which choice has the focus.
    else if (redraws && (name === "up" || name === "down")) decision.move(name === "up" ? -1 : 1)
    else if (name === "backspace") type(decision.typed.slice(0, -1))
    else if (!ctrl && !meta && text !== undefined && isPrintable(text)) type(decision.typed + text)
    if (shown.length > 0) draw()
  }

  function type(text: string): void {
    decision.type(text)
    const { named, typed } = decision
    if (named !== undefined && typed.length === 1)
      settling = setTimeout(() => select(choices[named]), settleMs)
  }

  const onKeypress = (text: string | undefined, key: Key | undefined) => press(text, key ?? {})
  // readline decodes the keys. Without an output stream, readline does not echo them.
  const lines = createInterface({ input, terminal: true, escapeCodeTimeout: 50 })
  lines.once("close", abort)
  signal.addEventListener("abort", abort, { once: true })
  input.prependListener("keypress", onKeypress)
  input.setRawMode(true)
  const opening = setTimeout(() => {
    if (redraws) output.write(`${enablePaste}${hideCursor}`)
    draw()
    if (redraws) output.on("resize", draw)
  }, discardMs)
  try {
    if (signal.aborted) abort()
    return await decided.promise
  } finally {
    clearTimeout(opening)
    clearTimeout(settling)
    signal.removeEventListener("abort", abort)
    input.off("keypress", onKeypress)
    output.off("resize", draw)
    lines.off("close", abort)
    lines.close()
    input.setRawMode(false)
    if (redraws) output.write(`${disablePaste}${showCursor}`)
  }
}
