import type { WriteStream } from "node:tty"
import type { Output } from "../process/stdout.ts"
import { type Activity, createStatusLine } from "./status-line.ts"
import { visible } from "./visible.ts"
import { createWordFold } from "./word-fold.ts"

/**
 * Page that shows a run to the user. Writes the model's text to one stream and notes to another. If both streams are
 * the same terminal, a note never starts within the text.
 */
export interface Page {
  /** True if the current activity is shown as a live line that disappears, as at a terminal. */
  readonly live: boolean
  /** Returns the maximum width of a line, in columns. */
  width(): number
  /**
   * Returns the width for wrapping sentences, in columns. In a log, sentences are not wrapped, so that they can be
   * searched.
   */
  proseWidth(): number
  /** Writes a note about the run. */
  note(line: string): void
  /** Writes text of the model. */
  say(text: string): void
  /** Ends the current line of text, if any. */
  endLine(): void
  /** Sets the activity that the live line shows. */
  setActivity(activity: Activity | undefined): void
  /** Hides the live line until the returned function is called. */
  pause(): () => void
  end(): void
}

/** Width in columns without a terminal, as in a build log. */
const logWidth = 120

/** Creates a page. The model's text goes to `output`, so that a pipe receives only the answer. */
export function createPage({ output, notes }: { output: Output; notes: WriteStream }): Page {
  const live = notes.isTTY === true
  const width = () => notes.columns || (live ? 80 : logWidth)
  const fold = createWordFold(width)
  let atLineStart = true
  const status = createStatusLine(notes, () => atLineStart || !output.isTTY)

  function say(text: string): void {
    status.clear()
    // Only a terminal interprets control characters.
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
