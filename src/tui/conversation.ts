import type { Component } from "@earendil-works/pi-tui"
import type { SessionState } from "../view/session-state.ts"
import { clip } from "./card-parts.ts"
import { type ConversationItem, itemsOfMessage, itemsOfNotes, type LineCache } from "./conversation-items.ts"
import { createNotes, type Notes } from "./notes.ts"
import type { Theme } from "./theme.ts"
import type { CallOptions } from "./tool-card.ts"

/** The messages of a session. Only messages that changed are formatted again. */
export interface Conversation extends Component {
  /** Shows a state. Before the first prompt, pass undefined to show nothing. */
  setState(state: SessionState | undefined, options?: { hasOlder: boolean }): void
  /** Whether the output of calls and the reasoning are shown completely. */
  expanded: boolean
  /** Calls and texts between the messages. */
  readonly notes: Notes
  setTheme(theme: Theme): void
  /** Number of lines in the latest frame. */
  readonly lineCount: number
  /** Number of the state's messages that are drawn. */
  readonly shownCount: number
  /** Draws more of the earlier messages. Returns false if all messages of the state are drawn. */
  showOlder(): boolean
  /**
   * Returns the number of lines at the start of the latest frame that need not be drawn again. Returns 0 if the
   * conversation is short.
   */
  spareLines(): number
  /** Stops drawing the {@link spareLines}. `areKept` is true if the terminal keeps them in its scrollback. */
  forgetSpareLines(options: { areKept: boolean }): void
  /** True if lines above the screen show an earlier state. */
  readonly isStale: boolean
  /** Draws the lines above the screen again with the next frame. */
  redraw(): void
  /** Draws only the last screen with the next frame. */
  redrawEnd(): void
}

/** Options for {@link createConversation}. */
export interface ConversationOptions {
  /** Returns the height of the screen. */
  rows(): number
  /** Returns the number of lines in the latest frame that are above the screen, where they can no longer be changed. */
  linesAbove(): number
  /** Name of the key that shows earlier messages. Empty if no key does. */
  olderKey: string
  /** Name of the key that shows all output. Empty if no key does. */
  expandKey: string
}

/**
 * Number of screens that are drawn when a session opens, because drawing 100 messages would take longer than the
 * startup.
 */
const firstScreens = 10
/**
 * Minimum number of lines that are drawn again after the terminal is resized, or added by {@link
 * Conversation.showOlder}.
 */
const pageLines = 500
/**
 * Number of drawn lines above the screen at which the earliest lines are dropped, because each frame compares all drawn
 * lines.
 */
const maxLines = 1_000

/**
 * Creates a conversation. Only the end is drawn, so that the time per frame does not depend on the length of the
 * session.
 *
 * A terminal cannot change the lines above its screen without clearing everything. Lines that have left the screen
 * therefore keep their old text even if the run changes them, for example when an earlier call ends.
 */
export function createConversation(
  theme: Theme,
  { rows, linesAbove, olderKey, expandKey }: ConversationOptions = noScreen,
): Conversation {
  let state: SessionState | undefined
  let hasOlder = false
  let expanded = false
  const notes = createNotes()
  let cache: LineCache = new WeakMap()
  /** First message that is drawn. Undefined until the next frame chooses it. */
  let first: { messageID: string; key?: string } | undefined
  /** True if the line about earlier messages is drawn. */
  let hasHead = false
  /** Minimum number of lines that the next frame draws if it chooses the first message. */
  let wantedLines = 0
  let drawn: ConversationItem[] = []
  /** Number of lines in the terminal's scrollback that come before the lines of the latest frame. */
  let forgotten = 0
  let size = ""
  let isStale = false
  let keepsLinesAbove = true

  /** Makes the next frame choose the first message again, and draw at least `lines` lines. */
  function restart(lines: number): void {
    first = undefined
    wantedLines = lines
    keepsLinesAbove = false
    forgotten = 0
  }

  /** Makes the next frame draw the terminal's scrollback again, up to {@link maxLines} lines. */
  function restartAll(): void {
    restart(Math.min(maxLines, Math.max(pageLines, forgotten + countLines(drawn))))
  }

  function optionsOf(): CallOptions {
    return {
      ...{ theme, expanded, expandKey, subagents: state?.subagents ?? new Map() },
      worktree: state?.session.worktree ?? "",
    }
  }

  function itemsAfter(index: number, width: number): ConversationItem[] {
    const item = state?.messages[index]
    if (!item) return []
    const options = { ...optionsOf(), width, cache }
    return [...itemsOfMessage(item, options), ...itemsOfNotes(notes, item.message.id, options)]
  }

  /** Draws at least the wanted number of lines, beginning with a complete message. */
  function drawEnd(width: number): ConversationItem[] {
    const { messages = [] } = state ?? {}
    const items: ConversationItem[][] = []
    let index = messages.length
    for (let lines = 0; index > 0 && lines < wantedLines; ) {
      index -= 1
      const added = itemsAfter(index, width)
      items.unshift(added)
      lines += countLines(added)
    }
    const id = messages[index]?.message.id
    first = id === undefined ? undefined : { messageID: id }
    hasHead = true
    return items.flat()
  }

  function drawFromFirst(
    from: { messageID: string; key?: string },
    width: number,
  ): ConversationItem[] | undefined {
    const { messages = [] } = state ?? {}
    const index = messages.findIndex(({ message }) => message.id === from.messageID)
    if (index < 0) return undefined
    const items = messages.slice(index).flatMap((_, offset) => itemsAfter(index + offset, width))
    const start = from.key === undefined ? 0 : items.findIndex(({ key }) => key === from.key)
    return start < 0 ? undefined : items.slice(start)
  }

  function headItems(width: number): ConversationItem[] {
    if (!hasHead) return []
    const isWhole = !first || (first.messageID === state?.messages[0]?.message.id && !hasOlder)
    if (isWhole) return itemsOfNotes(notes, undefined, { ...optionsOf(), width, cache })
    const text = `── earlier messages${olderKey === "" ? "" : `: ${olderKey}`} ──`
    return [{ key: "head", messageID: undefined, lines: [clip(theme.dim(text), width), ""] }]
  }

  /**
   * Replaces the lines above the screen with those of the latest frame. Returns undefined if these lines now belong to
   * different items.
   */
  function keepLinesAbove(items: readonly ConversationItem[], above: number): ConversationItem[] | undefined {
    let end = 0
    let isChanged = false
    const kept: ConversationItem[] = []
    for (const [index, item] of items.entries()) {
      const before = drawn[index]
      const start = end
      if (start >= above) {
        kept.push(item)
        continue
      }
      if (before?.key !== item.key) return undefined
      end += before.lines.length
      if (before.lines === item.lines) {
        kept.push(item)
        continue
      }
      const fixed = before.lines.slice(0, above - start)
      const isSame = fixed.every((line, at) => line === item.lines[at])
      if (isSame && (end > above || fixed.length === item.lines.length)) kept.push(item)
      else {
        isChanged = true
        kept.push({ ...item, lines: end > above ? [...fixed, ...item.lines.slice(fixed.length)] : fixed })
      }
    }
    if (end < above && items.length < drawn.length) return undefined
    isStale = isChanged
    return kept
  }

  function draw(width: number): ConversationItem[] {
    const end = (first && drawFromFirst(first, width)) ?? drawEnd(width)
    return [...headItems(width), ...end]
  }

  return {
    notes,
    get lineCount() {
      return countLines(drawn)
    },
    get shownCount() {
      const index = (state?.messages ?? []).findIndex(({ message }) => message.id === first?.messageID)
      return index < 0 ? 0 : (state?.messages.length ?? 0) - index
    },
    get isStale() {
      return isStale
    },
    setState(next, options) {
      if (next?.session.id !== state?.session.id) restart(firstScreens * rows())
      state = next
      hasOlder = options?.hasOlder ?? false
    },
    get expanded() {
      return expanded
    },
    set expanded(value) {
      expanded = value
      cache = new WeakMap()
      restartAll()
    },
    setTheme(next) {
      theme = next
      cache = new WeakMap()
      keepsLinesAbove = false
    },
    invalidate() {
      cache = new WeakMap()
    },
    redraw: restartAll,
    redrawEnd: () => restart(rows()),
    showOlder() {
      const isWhole = first === undefined || (hasHead && first.messageID === state?.messages[0]?.message.id)
      if (isWhole) return false
      restart(forgotten + countLines(drawn) + pageLines)
      return true
    },
    spareLines() {
      return countLines(spareItems())
    },
    forgetSpareLines({ areKept }) {
      const spare = spareItems()
      const next = drawn[spare.length]
      if (next?.messageID === undefined) return
      drawn = drawn.slice(spare.length)
      first = { messageID: next.messageID, key: next.key }
      hasHead = !areKept
      forgotten += areKept ? countLines(spare) : 0
    },
    render(width) {
      const nextSize = `${width} ${rows()}`
      // After the terminal is resized, its scrollback is drawn again.
      if (size !== "" && size !== nextSize) restartAll()
      size = nextSize
      const above = keepsLinesAbove ? linesAbove() : 0
      keepsLinesAbove = true
      isStale = false
      const items = draw(width)
      drawn = keepLinesAbove(items, above) ?? items
      return drawn.flatMap(({ lines }) => lines)
    },
  }

  /** Returns the first items of the latest frame that need not be drawn again. */
  function spareItems(): ConversationItem[] {
    let lines = countLines(drawn)
    // The next frame may draw more, for example because the user asked for earlier messages.
    if (first === undefined || lines <= maxLines + rows()) return []
    const end = drawn.findIndex((item) => {
      lines -= item.lines.length
      return lines < maxLines / 2 + rows()
    })
    return drawn.slice(0, end)
  }
}

/** Options without a screen, so that everything is drawn. */
const noScreen: ConversationOptions = {
  rows: () => Number.POSITIVE_INFINITY,
  linesAbove: () => 0,
  olderKey: "",
  expandKey: "",
}

function countLines(items: readonly ConversationItem[]): number {
  return items.reduce((sum, { lines }) => sum + lines.length, 0)
}
