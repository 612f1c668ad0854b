import { type Component, type Focusable, Input, Markdown, matchesKey } from "@earendil-works/pi-tui"
import type { QuestionAnswers, QuestionRequest } from "../schema/question.ts"
import { showInvisible } from "../util/invisible.ts"
import {
  clip,
  createEarlyKeys,
  createScrolledText,
  headLine,
  indented,
  keyHints,
  pasteStart,
  typedText,
} from "./card-parts.ts"
import { libraryKey } from "./keybindings.ts"
import { markdownTheme, type Theme } from "./theme.ts"

/** Options for {@link createQuestionCard}. */
export interface QuestionCardOptions {
  request: QuestionRequest
  theme: Theme
  /** Maximum height in lines. */
  rows(): number
  /** Called once, when the user answers. Undefined means that the user dismissed the questions. */
  onAnswer(answers: QuestionAnswers | undefined): void
  /**
   * Receives input that does not belong to the card: keys that are typed before the card accepts keys or after its
   * request has ended, and text that is pasted while no text field is open.
   */
  onEarlyKey(data: string): void
  requestRender(): void
}

/** A card that asks the user the questions of a request, one after another. */
export interface QuestionCard extends Component, Focusable {
  readonly requestID: string
  /** Sets the number of other requests that wait. */
  setWaiting(count: number): void
  /** Call this when another component used a key, so that the user may still be typing there. */
  delayKeys(): void
  /** Shows why the questions no longer wait. After this, the card accepts no answer. */
  showEnd(text: string): void
  close(): void
}

/**
 * Creates a card. The user chooses among options, or answers in their own words. Escape dismisses all questions, or
 * returns from a text field to the options, if any.
 */
export function createQuestionCard(options: QuestionCardOptions): QuestionCard {
  const { request, theme } = options
  const { questions, document, tool } = request
  const early = createEarlyKeys({ onEarlyKey: options.onEarlyKey, onOpen: options.requestRender })
  const scrolled = createScrolledText()
  const text = document && new Markdown(visible(document.text), 0, 0, markdownTheme(theme))
  const answers: QuestionAnswers = []
  let focus = 0
  let chosen = new Set<number>()
  let input: Input | undefined
  let end: string | undefined
  let waiting = 0
  let isFocused = false
  ask()

  function current() {
    const question = questions[answers.length]
    const labels = question?.options ?? []
    return { question, labels, own: labels.length }
  }

  function ask(): void {
    focus = 0
    chosen = new Set()
    input = undefined
    if (current().labels.length === 0) write()
  }

  /** Asks for an answer in the user's own words. */
  function write(): void {
    input = new Input()
    input.onSubmit = (value) => answer(value.trim() === "" ? [] : [value.trim()])
    input.onEscape = () => {
      if (current().labels.length === 0) finish(undefined)
      else input = undefined
    }
  }

  /** Answers the question with the chosen options, and with the user's own words, if any. */
  function answer(written: readonly string[]): void {
    const { labels } = current()
    const selected = labels.flatMap(({ label }, index) => (chosen.has(index) ? [label] : []))
    answers.push([...selected, ...written])
    if (answers.length === questions.length) finish(answers)
    else ask()
  }

  function finish(given: QuestionAnswers | undefined): void {
    close()
    end = given ? "Answered." : "Dismissed."
    options.onAnswer(given)
  }

  /**
   * Answers with the option at this index. If several options are allowed, toggles the option instead. The index after
   * the last option opens a text field.
   */
  function choose(index: number): void {
    const { question, own } = current()
    focus = index
    if (index === own) write()
    else if (!question?.multiple) {
      chosen = new Set([index])
      answer([])
    } else if (!chosen.delete(index)) chosen.add(index)
  }

  function pressOption(data: string): void {
    const { question, own } = current()
    const digit = Number(typedText(data) ?? Number.NaN)
    if (matchesKey(data, "escape")) finish(undefined)
    else if (matchesKey(data, "up")) focus = (focus + own) % (own + 1)
    else if (matchesKey(data, "down")) focus = (focus + 1) % (own + 1)
    else if (matchesKey(data, "enter") && question?.multiple && focus !== own) answer([])
    else if (matchesKey(data, "enter")) choose(focus)
    else if (matchesKey(data, "space") && question?.multiple) choose(focus)
    else if (Number.isInteger(digit) && digit >= 1 && digit <= own + 1) choose(digit - 1)
  }

  function close(): void {
    early.close()
  }

  function foot(width: number): string[] {
    const { question, labels, own } = current()
    if (end !== undefined || !question) return [clip(`  ${theme.warning(end ?? "")}`, width)]
    const asked = indented(visible(question.question), width).map(theme.bold)
    if (input) {
      const hints = keyHints([
        [libraryKey("tui.input.submit"), chosen.size > 0 ? "answers" : "answers, or skips if empty"],
        [libraryKey("tui.select.cancel"), labels.length === 0 ? "dismisses" : "goes back"],
      ])
      return [...asked, ...input.render(width), clip(theme.dim(`  ${hints}`), width)]
    }
    const rows = labels.flatMap(({ label, description }, index) =>
      optionLines({ index, label, description, width }),
    )
    const keys = question.multiple
      ? "Space or a digit chooses, Enter answers. Esc dismisses."
      : "Press a digit, or ↑ ↓ and Enter. Esc dismisses."
    return [
      ...asked,
      ...rows,
      ...optionLines({ index: own, label: "something else…", width }),
      clip(theme.dim(early.isOpen ? `  ${keys}` : "  …"), width),
    ]
  }

  function optionLines({
    index,
    label,
    description,
    width,
  }: {
    index: number
    label: string
    description?: string
    width: number
  }): string[] {
    const { question, own } = current()
    const mark = question?.multiple && index !== own ? (chosen.has(index) ? "[x] " : "[ ] ") : ""
    const line = clip(`${index + 1}  ${mark}${visible(label)}`, width - 2)
    const more = description === undefined ? [] : indented(visible(description), width, 6)
    return [
      index === focus ? `${theme.accent("❯")} ${theme.bold(line)}` : `  ${line}`,
      ...more.map((each) => theme.dim(each)),
    ]
  }

  return {
    requestID: request.id,
    get focused() {
      return isFocused
    },
    set focused(value) {
      isFocused = value
    },
    setWaiting(count) {
      waiting = count
    },
    delayKeys: early.restart,
    showEnd(reason) {
      close()
      end = reason
    },
    close,
    handleInput(data) {
      if (end !== undefined) {
        options.onEarlyKey(data)
        return
      }
      // Once the user is writing an answer, pasted text belongs to it.
      const isPasteForInput = early.isOpen && input !== undefined && data.includes(pasteStart)
      if (!isPasteForInput && !early.accepts(data)) return
      if (scrolled.handleInput(data)) options.requestRender()
      else if (input) input.handleInput(data)
      else pressOption(data)
      options.requestRender()
    },
    handleMouse(event) {
      if (event.type !== "wheel") return undefined
      scrolled.scrollBy(event.wheelDelta ?? 0)
      return { handled: true }
    },
    invalidate() {
      text?.invalidate()
    },
    render(width) {
      early.setDrawn()
      if (input) input.focused = isFocused
      const { question } = current()
      const count =
        questions.length > 1
          ? ` ${Math.min(answers.length + 1, questions.length)} of ${questions.length}`
          : ""
      const header = question?.header === undefined ? "" : `: ${visible(question.header)}`
      const asker = tool?.parent ? ` (the subagent ${visible(tool.parent.agent)} asks)` : ""
      const note = waiting > 0 ? `${waiting} more waiting` : ""
      const bottom = foot(width)
      const room = Math.max(3, options.rows() - bottom.length - 2)
      const shown = document
        ? [
            theme.dim(clip(`  ${visible(document.title)} (${visible(document.path)})`, width)),
            ...(text?.render(width - 2).map((line) => clip(`  ${line}`, width)) ?? []),
          ]
        : []
      return [
        headLine({ title: `? Question${count}${header}${asker}`, note, width, theme }),
        ...scrolled.render(shown, room, theme).map((line) => clip(line, width)),
        ...(document ? [""] : []),
        ...bottom,
      ]
    },
  }
}

function visible(text: string): string {
  return showInvisible(text, { keepTabs: true })
}
