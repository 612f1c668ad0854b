import { type Component, matchesKey } from "@earendil-works/pi-tui"
import { clip, createScrolledText, headLine, wrap } from "./card-parts.ts"
import type { Theme } from "./theme.ts"

/** A text, or a function that renders the text with a width. */
export type PanelText = string | ((width: number) => string[])

/**
 * A panel above the editor. Shows a text, such as the output of a command, until the user closes the panel or sends an
 * input.
 */
export interface Panel extends Component {
  readonly isOpen: boolean
  /** Shows a text, which may contain styles. Scrolls to its beginning. */
  show(title: string, text: PanelText): void
  hide(): void
}

/**
 * Creates a closed panel. An open panel shows at most `rows()` lines of text. `closeKey` is the name of the key that
 * closes the panel, or an empty string if no key does.
 */
export function createPanel({
  theme,
  rows,
  closeKey,
}: {
  theme: Theme
  rows(): number
  closeKey: string
}): Panel {
  let content: { title: string; text: PanelText } | undefined
  let scrolled = createScrolledText()
  return {
    get isOpen() {
      return content !== undefined
    },
    show(title, text) {
      content = { title, text }
      scrolled = createScrolledText()
    },
    hide() {
      content = undefined
    },
    handleInput(data) {
      if (matchesKey(data, "escape")) content = undefined
      else scrolled.handleInput(data)
    },
    invalidate() {},
    render(width) {
      if (!content) return []
      const { text } = content
      const wrapped = typeof text === "string" ? wrap(text, width - 2) : text(width - 2)
      const lines = wrapped.map((line) => clip(`  ${line}`, width))
      return [
        headLine({ title: content.title, note: closeKey && `${closeKey} closes`, width, theme }),
        ...scrolled.render(lines, rows(), theme).map((line) => clip(line, width)),
      ]
    },
  }
}
