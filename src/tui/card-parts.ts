import {
  decodeKittyPrintable,
  matchesKey,
  truncateToWidth,
  visibleWidth,
  wrapTextWithAnsi,
} from "@earendil-works/pi-tui"
import { isPrintable } from "../view/decision.ts"
import type { Theme } from "./theme.ts"

/**
 * Time in milliseconds without input after which a card accepts keys. Earlier keys may belong to text that the user is
 * still typing.
 */
export const quietMs = 500

/** Mark that a terminal puts before pasted text. */
export const pasteStart = "\u001b[200~"
/** Mark that a terminal puts after pasted text. */
export const pasteEnd = "\u001b[201~"

/** Measures the time since the latest input. */
export interface Pause {
  /** True if no input has arrived for {@link quietMs}. */
  readonly isOver: boolean
  /** Measures from now. */
  restart(): void
  /** Ends the pause without a call of `onOver`. */
  close(): void
}

/** Creates a pause that is over until its first restart. Calls `onOver` each time that the pause ends. */
export function createPause(onOver = () => {}): Pause {
  let isOver = true
  let timer: ReturnType<typeof setTimeout> | undefined
  let check: ReturnType<typeof setImmediate> | undefined

  function close(): void {
    isOver = true
    clearTimeout(timer)
    clearImmediate(check)
  }

  function end(): void {
    isOver = true
    onOver()
  }

  return {
    get isOver() {
      return isOver
    },
    restart() {
      close()
      isOver = false
      // On a busy machine, input that arrived in time may still be unread. It is read before the immediate runs.
      timer = setTimeout(() => {
        check = setImmediate(end)
      }, quietMs)
    },
    close,
  }
}

/** Forwards keys that the user typed before noticing a card. */
export interface EarlyKeys {
  /** Returns true if the card may use the input. Otherwise, forwards or drops the input and returns false. */
  accepts(data: string): boolean
  /** Call this whenever the card is drawn. The user cannot have noticed the card earlier. */
  setDrawn(): void
  /** Closes the card for keys until the user pauses again. */
  restart(): void
  /** True once the card accepts keys. */
  readonly isOpen: boolean
  close(): void
}

/**
 * Passes all input to `onEarlyKey` until the card is drawn and the user has typed nothing for {@link quietMs}. Pasted
 * text is always passed to `onEarlyKey`, because it must not answer a card. Terminal reports, such as focus changes, are
 * dropped.
 */
export function createEarlyKeys(options: { onEarlyKey(data: string): void; onOpen(): void }): EarlyKeys {
  let isDrawn = false
  let isPasting = false
  const pause = createPause(options.onOpen)
  const isOpen = () => isDrawn && pause.isOver

  return {
    get isOpen() {
      return isOpen()
    },
    setDrawn() {
      if (!isDrawn) pause.restart()
      isDrawn = true
    },
    restart: pause.restart,
    accepts(data) {
      const wasOpen = isOpen()
      if (!wasOpen) pause.restart()
      if (isReport(data)) return false
      if (data.includes(pasteStart)) isPasting = true
      if (isPasting) {
        if (data.includes(pasteEnd)) isPasting = false
        options.onEarlyKey(data)
        return false
      }
      if (wasOpen) return true
      options.onEarlyKey(data)
      return false
    },
    close: pause.close,
  }
}

/** Returns true if the input is a terminal report: a focus change, a mouse event, or an answer to a query. */
export function isReport(data: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: reports begin with an escape character
  return /^\x1b(?:\[[IO]$|\[<[\d;]+[Mm]$|\[M|\]|P|\[\?)/.test(data)
}

/** Shows a text of any length in a limited number of rows. */
export interface ScrolledText {
  /** Returns the visible lines. If lines are hidden, the last line says how many. */
  render(lines: readonly string[], room: number, theme: Theme): string[]
  /** Scrolls the text and returns true if the input is a scroll key. Otherwise returns false. */
  handleInput(data: string): boolean
  scrollBy(lines: number): void
}

/** Creates a scrolled text that starts at its first line. */
export function createScrolledText(): ScrolledText {
  let offset = 0
  let page = 1

  const scrollBy = (lines: number) => {
    offset = Math.max(0, offset + lines)
  }

  return {
    render(lines, room, theme) {
      if (lines.length <= room) {
        offset = 0
        return [...lines]
      }
      page = Math.max(1, room - 1)
      offset = Math.min(offset, lines.length - page)
      const below = lines.length - offset - page
      const hidden = [offset > 0 ? `↑ ${offset}` : "", below > 0 ? `↓ ${below}` : ""].filter(
        (text) => text !== "",
      )
      const noun = offset + Math.max(0, below) === 1 ? "line" : "lines"
      const note = `  ${hidden.join("  ")} more ${noun}, PgUp and PgDn scroll`
      return [...lines.slice(offset, offset + page), theme.warning(note)]
    },
    handleInput(data) {
      if (matchesKey(data, "pageUp")) scrollBy(-page)
      else if (matchesKey(data, "pageDown")) scrollBy(page)
      else if (matchesKey(data, "shift+up")) scrollBy(-1)
      else if (matchesKey(data, "shift+down")) scrollBy(1)
      else return false
      return true
    },
    scrollBy,
  }
}

/** Cuts a line that is wider than the width, and marks the cut. */
export function clip(line: string, width: number): string {
  if (maxColumns(line) <= width || visibleWidth(line) <= width) return line
  return truncateToWidth(line, width, width > 1 ? "…" : "")
}

/** Returns an upper limit of the line's columns. Measuring the exact number takes ten times as long. */
function maxColumns(line: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: styles begin with an escape character
  const plain = line.includes("\u001b") ? line.replaceAll(/\x1b\[[\d;]*m/g, "") : line
  let columns = 0
  for (let index = 0; index < plain.length; index += 1) {
    const code = plain.charCodeAt(index)
    const isNarrow = (code >= 0x20 && code < 0x7f) || (code >= 0x2500 && code < 0x2580)
    // Counts each of the two codes of an emoji as two columns, and a tab as three.
    columns += isNarrow ? 1 : code < 0x20 ? 3 : 2
  }
  return columns
}

/** Wraps text to the width, with spaces instead of tabs. */
export function wrap(text: string, width: number): string[] {
  return text
    .replaceAll("\t", "    ")
    .split("\n")
    .flatMap((line) => (line === "" ? [""] : wrapTextWithAnsi(line, Math.max(1, width))))
}

/** Wraps text and indents each line. */
export function indented(text: string, width: number, by = 2): string[] {
  return wrap(text, width - by).map((line) => clip(" ".repeat(by) + line, width))
}

/**
 * Returns the hint about the key that shows all lines, or an empty string if they are shown or if no key shows them.
 */
export function expandHint({ expanded, expandKey }: { expanded?: boolean; expandKey?: string }): string {
  return expanded || !expandKey ? "" : ` (${expandKey} shows all)`
}

/** Joins keys and their effects, such as `Enter answers · Esc goes back`. Omits effects without a key. */
export function keyHints(hints: readonly (readonly [key: string, effect: string])[]): string {
  return hints
    .filter(([key]) => key !== "")
    .map((hint) => hint.join(" "))
    .join(" · ")
}

/** Minimum width at which the names and texts of a list are shown side by side. */
const minTableWidth = 60

/**
 * Renders names with their texts: side by side, or on a narrow screen with each text below its name. Names may be
 * wider than the column of names, whose width is `nameWidth`.
 */
export function renderTable(
  rows: readonly { name: string; text: string }[],
  { nameWidth, width, theme }: { nameWidth: number; width: number; theme: Theme },
): string[] {
  return rows.flatMap(({ name, text }) => {
    if (width < minTableWidth) return [...wrap(theme.bold(name), width), ...indented(text, width)]
    const [first = "", ...more] = wrap(text, width - nameWidth)
    const head = theme.bold(name.padEnd(nameWidth))
    if (visibleWidth(head) > nameWidth) return [head, ...indented(text, width, nameWidth)]
    return [`${head}${first}`, ...more.map((line) => `${" ".repeat(nameWidth)}${line}`)]
  })
}

/**
 * Returns the line that separates a card from the text above it. It contains the title, a horizontal rule, and a note
 * on the right.
 */
export function headLine({
  title,
  note = "",
  width,
  theme,
}: {
  title: string
  note?: string
  width: number
  theme: Theme
}): string {
  const room = width - 4
  const right = note === "" ? "" : ` ${note} `
  const left = clip(` ${title} `, Math.max(4, room - visibleWidth(right)))
  const rule = "─".repeat(Math.max(0, room - visibleWidth(left) - visibleWidth(right)))
  return clip(
    `${theme.warning("──")}${theme.bold(left)}${theme.warning(rule)}${theme.dim(right)}${theme.warning("──")}`,
    width,
  )
}

/** Returns the printable characters in the input. Returns undefined for other input, such as an arrow key. */
export function typedText(data: string): string | undefined {
  return isPrintable(data) ? data : decodeKittyPrintable(data)
}
