import type { ToolPart } from "../schema/part.ts"
import { terminalText } from "../util/terminal-text.ts"
import { visible } from "../view/visible.ts"
import { clip, expandHint, wrap } from "./card-parts.ts"
import { type CallOptions, renderCall } from "./tool-card.ts"

/** One of the user's shell commands, a text from a tool, or a warning. A changed note is a new object. */
export type Note = { call: ToolPart } | { text: string }

/**
 * Content between the messages of the conversation. It is not part of the session. `after` is the id of the message
 * that precedes a note, or undefined for a note before the first message.
 */
export interface Notes {
  /** Adds a text. Joins consecutive texts. */
  addText(text: string, after: string | undefined): void
  /** Adds a call. If a note already contains the call, updates the call in this note. */
  setCall(call: ToolPart, after: string | undefined): void
  clear(): void
  /** Returns the notes after a message. If `messageID` is undefined, returns the notes before the first message. */
  after(messageID: string | undefined): readonly Note[]
  readonly isEmpty: boolean
}

/** Maximum number of notes after one message. The oldest notes are dropped. */
const maxNotes = 200
/** Maximum number of characters in a text. The end of a longer text is kept. */
const maxCharacters = 20_000
/** Maximum number of lines of a text that is not expanded. */
const maxLines = 10
/** Maximum number of lines of a command's output that is not expanded. */
const maxOutputLines = 40

/** Creates an empty collection of notes. */
export function createNotes(): Notes {
  const notes = new Map<string | undefined, readonly Note[]>()

  function set(after: string | undefined, next: readonly Note[]): void {
    notes.set(after, next.slice(-maxNotes))
  }

  return {
    addText(text, after) {
      const known = notes.get(after) ?? []
      const last = known.at(-1)
      if (!last || "call" in last) set(after, [...known, { text: text.slice(-maxCharacters) }])
      else set(after, known.with(-1, { text: `${last.text}\n${text}`.slice(-maxCharacters) }))
    },
    setCall(call, after) {
      for (const [place, known] of notes) {
        const index = known.findIndex((note) => "call" in note && note.call.id === call.id)
        if (index >= 0) return set(place, known.with(index, { call }))
      }
      set(after, [...(notes.get(after) ?? []), { call }])
    },
    clear: () => notes.clear(),
    after: (messageID) => notes.get(messageID) ?? [],
    get isEmpty() {
      return notes.size === 0
    },
  }
}

/** Formats a note, followed by an empty line. */
export function renderNote(note: Note, width: number, options: CallOptions): string[] {
  return "call" in note
    ? renderCall(note.call, width, { ...options, maxOutputLines })
    : renderText(note.text, width, options)
}

function renderText(text: string, width: number, { theme, ...options }: CallOptions): string[] {
  const lines = visible(terminalText(text).trim())
    .split("\n")
    .flatMap((line) => wrap(line, width - 2))
  const shown = options.expanded ? lines : lines.slice(-maxLines)
  const hidden = lines.length - shown.length
  const note = `… ${hidden} earlier ${hidden === 1 ? "line" : "lines"}${expandHint(options)}`
  const marked = [...(hidden > 0 ? [note] : []), ...shown].map(
    (line, index) => `${index === 0 ? "!" : " "} ${line}`,
  )
  return [...marked.map((line) => theme.warning(clip(line, width))), ""]
}
