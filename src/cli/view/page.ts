import type { WriteStream } from "node:tty"
import type { Output } from "../process/stdout.ts"
import { type Activity, createStatusLine } from "./status-line.ts"
import { visible } from "./visible.ts"
import { createWordFold } from "./word-fold.ts"

/**
 * Shows a run to users: the model's text on one stream, lines about its work on the other. If both are one terminal, a
 * line never starts within the text.
 */
export interface Page {
  /** True if current activity is a live line that disappears, as at a terminal. */
  readonly live: boolean
  /** Columns of a line. */
  width(): number
  /** Columns of sentences, which stay whole in a log so that they can be searched. */
  proseWidth(): number
  /** Writes a line about the work. */
  note(line: string): void
  /** Writes text of the model. */
  say(text: string): void
  /** Ends the current line of text, if any. */
  endLine(): void
  /** Sets the content of the live line. */
  setActivity(activity: Activity | undefined): void
  /** Hides the live line until the returned function is called. */
  pause(): () => void
  end(): void
}

/** Columns without a terminal, as in a build log. */
const logWidth = 120

/** Creates a page. Text goes to `output`, so that a pipe receives only the answer. */
export function createPage({ output, notes }: { output: Output; notes: WriteStream }): Page {
  const live = notes.isTTY === true
  const width = () => notes.columns || (live ? 80 : logWidth)
  const fold = createWordFold(width)
  let atLineStart = true
  const status = createStatusLine(notes, () => atLineStart || !output.isTTY)

  function say(text: string): void {
    status.clear()
    // Only a terminal would act on control characters.
    output.write(output.isTTY ? fold.push(visible(text)) : text)
    atLineStart = text.endsWith("\n")
  }

  return {
    live,
    width,
    proseWidth: () => (live ? width() : Number.POSITIVE_INFINITY),
    note(line) {
      status.clear()
      if (!atLineStart) {
        output.write(`${fold.end()}\n`)
        atLineStart = true
      }
      notes.write(`${line}\n`)
    },
    say,
    endLine() {
      if (!atLineStart) say("\n")
    },
    setActivity: (activity) => status.set(activity),
    pause: () => status.pause(),
    end() {
      status.clear()
      if (output.isTTY) output.write(fold.end())
    },
  }
}
