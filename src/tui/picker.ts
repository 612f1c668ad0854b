import {
  type Component,
  type Focusable,
  fuzzyFilter,
  Input,
  matchesKey,
  type OverlayHandle,
  type TUI,
  visibleWidth,
} from "@earendil-works/pi-tui"
import { errorMessage } from "../util/errors.ts"
import { oneLine } from "../view/visible.ts"
import { clip, headLine, wrap } from "./card-parts.ts"
import type { Theme } from "./theme.ts"

/** One entry of a picker. */
export interface PickerItem<T> {
  value: T
  label: string
  /** Characters before the label that draw the branches of a tree. */
  lead?: string
  /** Text on the right of the label. */
  detail?: string
  /** A line below the label, such as the matching text of a search. */
  excerpt?: string
  /** Whether the entry is the current choice, which is marked. */
  isCurrent?: boolean
}

/** An action of a picker on its own key. */
export interface PickerAction<T> {
  key: "ctrl+x" | "ctrl+r" | "ctrl+a"
  /** Text for the hint, such as `Ctrl+X deletes`. */
  label: string
  run(value: T | undefined, picker: Picker<T>): void
}

/** Options for {@link createPicker}. */
export interface PickerOptions<T> {
  title: string
  theme: Theme
  /** Maximum height in lines. */
  rows(): number
  /** Lines above the entries, such as the files that a choice changes. At most eight are shown. */
  about?: readonly string[]
  items: readonly PickerItem<T>[]
  /** Returns the entries that match the typed text. Default: a fuzzy search in `items`. */
  search?(query: string): Promise<readonly PickerItem<T>[]>
  onChoose(value: T): void
  onCancel(): void
  /** More actions, for the selected entry. `value` is undefined if nothing is found. */
  actions?: readonly PickerAction<T>[]
  /** Returns lines about the selected entry, which the picker shows below the list. At most four are shown. */
  preview?(value: T): Promise<readonly string[]>
  /** Verb for the Enter key in the hint, such as `opens`. */
  verb?: string
  requestRender(): void
}

/** A list from which the user picks an entry. Typing filters the list. */
export interface Picker<T> extends Component, Focusable {
  /** Replaces the entries. Keeps the focus on the same entry if it still exists. */
  /** Replaces the entries. Keeps the focus on the same entry if it still exists. */
  setItems(items: readonly PickerItem<T>[]): void
  /** Shows a text in place of the hint, until the next key. */
  notify(text: string): void
}

/** Time in milliseconds after the last key before a search starts or a preview is loaded. */
const delayMs = 150

/** Maximum number of lines of a preview. */
const maxPreview = 4

/** Maximum number of lines above the entries. */
const maxAbout = 8

/** Creates a picker with the focus on the current entry, or on the first entry if none is current. */
export function createPicker<T>(options: PickerOptions<T>): Picker<T> {
  const { theme, title, search, actions = [], requestRender } = options
  const input = new Input({ prompt: "> ", placeholder: "type to filter", placeholderStyle: theme.dim })
  let items = options.items
  let shown = items
  let focus = Math.max(
    0,
    shown.findIndex(({ isCurrent }) => isCurrent),
  )
  let timer: ReturnType<typeof setTimeout> | undefined
  let searches = 0
  let problem: string | undefined
  let notice: string | undefined
  let previewTimer: ReturnType<typeof setTimeout> | undefined
  let preview: { value: T; lines: readonly string[] } | undefined

  /** Loads the preview of the selected entry, if the user does not select another one first. */
  function loadPreview(): void {
    const value = shown[focus]?.value
    clearTimeout(previewTimer)
    if (!options.preview || value === undefined || preview?.value === value) return
    const load = options.preview
    previewTimer = setTimeout(async () => {
      const lines = await load(value).catch((error: unknown) => [errorMessage(error)])
      if (shown[focus]?.value !== value) return
      preview = { value, lines }
      requestRender()
    }, delayMs)
  }

  function end(): void {
    clearTimeout(timer)
    clearTimeout(previewTimer)
  }

  function filter(): void {
    const query = input.getValue().trim()
    focus = 0
    if (search) {
      clearTimeout(timer)
      timer = setTimeout(() => void runSearch(query, search), delayMs)
    } else shown = matching(query)
  }

  function matching(query: string): readonly PickerItem<T>[] {
    return query === ""
      ? items
      : fuzzyFilter([...items], query, ({ label, detail = "" }) => `${label} ${detail}`)
  }

  async function runSearch(query: string, find: NonNullable<typeof search>): Promise<void> {
    searches += 1
    const number = searches
    try {
      const found = query === "" ? items : await find(query)
      if (number !== searches) return
      shown = found
      problem = undefined
    } catch (error) {
      problem = errorMessage(error)
    }
    focus = 0
    loadPreview()
    requestRender()
  }

  function press(data: string): void {
    const chosen = shown[focus]
    const action = actions.find(({ key }) => matchesKey(data, key))
    notice = undefined
    if (matchesKey(data, "escape") || matchesKey(data, "ctrl+c")) {
      end()
      options.onCancel()
    } else if (matchesKey(data, "enter")) {
      end()
      if (chosen) options.onChoose(chosen.value)
    } else if (matchesKey(data, "up")) move(-1)
    else if (matchesKey(data, "down")) move(1)
    else if (matchesKey(data, "pageUp")) move(-10)
    else if (matchesKey(data, "pageDown")) move(10)
    else if (action) action.run(chosen?.value, picker)
    else {
      const before = input.getValue()
      input.handleInput(data)
      if (input.getValue() !== before) filter()
    }
  }

  /** Moves the focus. A move by one entry wraps around at both ends of the list. */
  function move(by: number): void {
    const last = shown.length - 1
    if (last < 0) return
    const next = focus + by
    if (Math.abs(by) === 1 && (next < 0 || next > last)) focus = next < 0 ? last : 0
    else focus = Math.min(last, Math.max(0, next))
  }

  function itemLines(
    { label, lead = "", detail = "", excerpt, isCurrent }: PickerItem<T>,
    isFocused: boolean,
    width: number,
  ): string[] {
    const mark = isFocused ? theme.accent("❯ ") : "  "
    // A deep tree must leave room for the text.
    const lines = theme.dim(lead.slice(-Math.floor(width / 2)))
    const text = oneLine(label, width - 4 - visibleWidth(lines))
    const room = width - 4 - visibleWidth(lines) - visibleWidth(text)
    const more = room > 12 ? oneLine(detail, room - 2) : ""
    const current = isCurrent ? theme.success(" ✓") : ""
    const line = `${mark}${lines}${isFocused ? theme.selected(text) : text}${current}${more === "" ? "" : `  ${theme.dim(more)}`}`
    const below = excerpt === undefined ? [] : [theme.dim(`    ${oneLine(excerpt, width - 5)}`)]
    return [line, ...below].map((each) => clip(each, width))
  }

  /** Returns the lines of as many entries around the focus as fit. */
  function listLines(room: number, width: number): string[] {
    if (shown.length === 0) return [theme.dim(clip("  Nothing found.", width))]
    const height = shown.some(({ excerpt }) => excerpt !== undefined) ? 2 : 1
    const count = Math.max(1, Math.floor(room / height))
    const start = Math.max(0, Math.min(focus - Math.floor(count / 2), shown.length - count))
    return shown
      .slice(start, start + count)
      .flatMap((item, index) => itemLines(item, start + index === focus, width))
  }

  function aboutLines(width: number): string[] {
    const { about = [] } = options
    const room = Math.max(1, Math.min(maxAbout, options.rows() - 8))
    const shown = about.length > room ? about.slice(0, room - 1) : about
    const more = about.length - shown.length
    const lines = [...shown, ...(more > 0 ? [`… and ${more} more`] : [])]
    return lines.map((line) => clip(theme.dim(`  ${oneLine(line, width - 2)}`), width))
  }

  /** Returns the lines of the preview. Reserves them while they load, so that the list does not move. */
  function previewLines(width: number): string[] {
    if (!options.preview || options.rows() < 14) return []
    const lines = shown[focus]?.value === preview?.value ? (preview?.lines ?? []) : []
    const texts = Array.from({ length: maxPreview }, (_, index) => lines[index] ?? "")
    return ["", ...texts].map((line) => clip(theme.dim(`  ${oneLine(line, width - 3)}`), width))
  }

  const picker: Picker<T> = {
    get focused() {
      return input.focused
    },
    set focused(value) {
      input.focused = value
    },
    setItems(next) {
      const chosen = shown[focus]?.value
      items = next
      shown = search && input.getValue().trim() !== "" ? shown : matching(input.getValue().trim())
      const found = shown.findIndex(({ value }) => value === chosen)
      focus = found >= 0 ? found : Math.min(focus, Math.max(0, shown.length - 1))
      loadPreview()
    },
    notify(text) {
      notice = text
      requestRender()
    },
    handleInput(data) {
      press(data)
      loadPreview()
      requestRender()
    },
    invalidate: () => input.invalidate(),
    render(width) {
      const note = shown.length > 1 ? `${focus + 1} of ${shown.length}` : ""
      const keys = [
        "↑ ↓",
        `Enter ${options.verb ?? "selects"}`,
        ...actions.map(({ label }) => label),
        "Esc closes",
      ]
      const style = notice === undefined ? theme.dim : theme.warning
      // Breaks lines only between the keys.
      const together = keys.map((key) => key.replaceAll(" ", "\u00a0")).join(" · ")
      const hint = wrap(notice ?? together, width - 2).map((line) =>
        style(`  ${line.replaceAll("\u00a0", " ")}`),
      )
      const about = aboutLines(width)
      const below = previewLines(width)
      const room = options.rows() - 3 - hint.length - about.length - below.length
      return [
        headLine({ title, note, width, theme }),
        ...about,
        ...input.render(width),
        ...listLines(Math.max(3, room), width),
        ...below,
        ...(problem === undefined ? [] : [clip(theme.error(`  ${oneLine(problem, width - 2)}`), width)]),
        ...hint,
      ]
    },
  }
  loadPreview()
  return picker
}

/** Shows a picker as an overlay. Resolves with the choice, or with undefined if the user closes the picker. */
export function pick<T>(
  tui: TUI,
  options: Omit<PickerOptions<T>, "onChoose" | "onCancel" | "rows" | "requestRender">,
): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<T | undefined>()
  let handle: OverlayHandle | undefined
  const end = (value: T | undefined) => {
    handle?.hide()
    resolve(value)
  }
  const picker: Picker<T> = createPicker<T>({
    ...options,
    rows: () => Math.min(24, Math.max(8, tui.terminal.rows - 4)),
    requestRender: () => tui.requestRender(),
    onChoose: end,
    onCancel: () => end(undefined),
  })
  handle = tui.showOverlay(picker, { anchor: "bottom-left", width: "100%", margin: { bottom: 1 } })
  return promise
}
