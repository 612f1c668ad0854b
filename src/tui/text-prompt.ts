import {
  type Component,
  type Focusable,
  Input,
  matchesKey,
  type OverlayHandle,
  type TUI,
} from "@earendil-works/pi-tui"
import { clip, headLine } from "./card-parts.ts"
import type { Theme } from "./theme.ts"

/**
 * Asks for one line of text in an overlay that contains `value`. Resolves with the text, or with undefined if the user
 * closes the overlay or enters nothing.
 */
export function askText(
  tui: TUI,
  { title, theme, value }: { title: string; theme: Theme; value: string },
): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  const input = new Input({ prompt: "> " })
  input.setValue(value)
  // The cursor is at the end of the text.
  input.handleInput("\u0005")
  let handle: OverlayHandle | undefined
  const end = (text: string | undefined) => {
    handle?.hide()
    resolve(text || undefined)
  }
  const overlay: Component & Focusable = {
    get focused() {
      return input.focused
    },
    set focused(isFocused: boolean) {
      input.focused = isFocused
    },
    invalidate: () => input.invalidate(),
    handleInput(data: string) {
      if (matchesKey(data, "escape") || matchesKey(data, "ctrl+c")) end(undefined)
      else if (matchesKey(data, "enter")) end(input.getValue().trim())
      else input.handleInput(data)
      tui.requestRender()
    },
    render: (width: number) => [
      headLine({ title, note: "", width, theme }),
      ...input.render(width),
      clip(theme.dim("  Enter saves · Esc closes"), width),
    ],
  }
  handle = tui.showOverlay(overlay, { anchor: "bottom-left", width: "100%", margin: { bottom: 1 } })
  return promise
}
