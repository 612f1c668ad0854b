import type { WriteStream } from "node:tty"
import { createMarkdownBlocks } from "../../view/markdown-blocks.ts"
import type { Output } from "../process/stdout.ts"
import { type Activity, createLiveRegion } from "./live-region.ts"
import type { RenderMarkdown } from "./markdown.ts"

/**
 * A page that shows a run to the user. Writes the model's text to one stream and notes to another. Even if both streams
 * are the same terminal, a note never starts in the middle of the text.
 */
export interface Page {
  /** True if the page can show the current activity in lines that disappear later, as in a terminal. */
  readonly live: boolean
  /** Returns the time in ms on a clock that stops during a question to the user. */
  clock(): number
  /** Returns the maximum width of a line, in columns. */
  width(): number
  /**
   * Returns the width for wrapping sentences, in columns. In a log, sentences are not wrapped, which keeps them
   * searchable.
   */
  proseWidth(): number
  /** Writes a note about the run. In a terminal, empty lines separate a note of several lines from other notes. */
  note(lines: readonly string[]): void
  /** Adds text from the model. A terminal shows it as Markdown, which `render` formats. */
  say(text: string, render: RenderMarkdown | undefined): void
  /** Completes the current text, if any. */
  endText(): void
  /** Sets the activities that the live lines show. */
  setActivities(activities: readonly Activity[]): void
  /** Hides the live lines until the returned function is called. */
  pause(): () => void
  end(): void
}

/** Options for {@link createPage}. With `quiet`, no progress lines are written to a log. */
export interface PageOptions {
  output: Output
  notes: WriteStream
  quiet: boolean
}

/** Width in columns if the output is not a terminal, as in a build log. */
const logWidth = 120

/** Maximum size of an unfinished block in characters. Only the end of a larger block is shown. */
const maxUnfinished = 8_000

/**
 * Time in ms without output after which a log reports what is running. The interval doubles with each report, up to one
 * minute.
 */
const firstReportMs = 10_000

/** Creates a page. The model's text goes to `output`, so that a pipe receives only the answer. */
export function createPage({ output, notes, quiet }: PageOptions): Page {
  const region = createLiveRegion(notes)
  const terminal = notes.isTTY === true
  const width = () => Math.max(20, (notes.columns || (terminal ? 80 : logWidth)) - (terminal ? 1 : 0))
  const sameTerminal = terminal && output.isTTY === true
  const blocks = createMarkdownBlocks()
  let renderer: RenderMarkdown | undefined
  let activities: readonly Activity[] = []
  /** True if the last text written without a renderer ended with a line break. */
  let atLineStart = true
  let saidBefore = false
  let silentSince = 0
  let reportAfterMs = firstReportMs
  const reports = region.live || quiet ? undefined : setInterval(reportProgress, 1_000).unref()
  /** Kind of content at the end of the screen. */
  let last: "nothing" | "line" | "lines" | "text" | "question" = "nothing"

  /** Writes an empty line between different kinds of content. */
  function separate(next: typeof last): void {
    const together =
      last === "question" ? next === "line" || next === "lines" : last === "line" && next === "line"
    if (terminal && last !== "nothing" && !together) notes.write("\n")
    last = next
  }

  function show(block: string): void {
    if (!renderer) return
    region.clear()
    if (sameTerminal) separate("text")
    output.write(`${renderer(block, width()).join("\n")}\n`)
    if (!sameTerminal) output.write("\n")
  }

  /** Returns the lines of the unfinished text, which appear above the activities. */
  function unfinished(): readonly string[] {
    const text = blocks.rest().slice(-maxUnfinished)
    const lines = renderer && text.trim() !== "" ? renderer(text, width()) : []
    const apart = last === "text" || last === "lines" || (last === "line" && lines.length > 0)
    return apart ? ["", ...lines] : lines
  }

  function writeNote(lines: readonly string[]): void {
    separate(lines.length > 1 ? "lines" : "line")
    notes.write(`${lines.join("\n")}\n`)
    silentSince = region.clock()
  }

  /** Reports in a log that the run is still working. */
  function reportProgress(): void {
    const [first] = activities
    if (!first || region.clock() - silentSince < reportAfterMs) return
    writeNote([`· ${first.text} · ${Math.floor((region.clock() - first.since) / 1000)} s`])
    reportAfterMs = Math.min(reportAfterMs * 2, 60_000)
  }

  return {
    live: region.live,
    clock: region.clock,
    width,
    proseWidth: () => (terminal ? width() : Number.POSITIVE_INFINITY),
    note(lines) {
      if (lines.length === 0) return
      writeNote(lines)
      reportAfterMs = firstReportMs
    },
    say(text, render) {
      renderer = render
      silentSince = region.clock()
      if (render) for (const block of blocks.push(text)) show(block)
      else {
        // Texts of different steps are different paragraphs.
        output.write(saidBefore && atLineStart ? `\n${text}` : text)
        saidBefore = true
        atLineStart = text.endsWith("\n")
      }
      if (sameTerminal) region.set({})
    },
    endText() {
      for (const block of blocks.end()) show(block)
      if (!atLineStart) output.write("\n")
      atLineStart = true
    },
    setActivities(next) {
      activities = next
      region.set({ text: unfinished, activities })
    },
    pause() {
      const resume = region.pause()
      separate("question")
      return resume
    },
    end() {
      clearInterval(reports)
      region.end()
    },
  }
}
