import type { WriteStream } from "node:tty"
import type { Output } from "../process/stdout.ts"
import { type Activity, createStatusLine } from "./status-line.ts"
import { visible } from "./visible.ts"
import { createWordFold } from "./word-fold.ts"

/**
 * Where a run is shown to people: the model's words on one stream, lines about its work on the other. Where both are one
 * terminal, a line never runs into the words.
 */
export interface Page {
  /** At a terminal what is under way is one live line that vanishes. */
  readonly live: boolean
  /** Columns of a line. */
  width(): number
  /** Columns of sentences: in a log they stay whole, for those who search it. */
  proseWidth(): number
  /** Writes a line about the work. */
  note(line: string): void
  /** Writes words of the model. */
  say(text: string): void
  /** Ends the line of words, where one has begun. */
  endLine(): void
  /** What the live line says. */
  setActivity(activity: Activity | undefined): void
  /** Keeps the live line away until the function it returns is called. */
  pause(): () => void
  end(): void
}

/** Columns of a line where nobody's terminal sets them, as in the log of a build. */
const logWidth = 120

/** Words go to `output`, so that a pipe gets the answer alone. */
export function createPage({ output, notes }: { output: Output; notes: WriteStream }): Page {
  const live = notes.isTTY === true
  const width = () => notes.columns || (live ? 80 : logWidth)
  const fold = createWordFold(width)
  let atLineStart = true
  const status = createStatusLine(notes, () => atLineStart || !output.isTTY)

  function say(text: string): void {
    status.clear()
    // A file or a program gets the words as they are; only a terminal would act on what is in them.
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
