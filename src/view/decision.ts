/** One choice in a decision. Each choice has its own key and digit. */
export interface Choice<T> {
  value: T
  /** Letter that selects the choice. */
  key: string
  /**
   * Digit that selects the choice. A choice has the same digit in every question, even if other choices are not
   * offered.
   */
  digit: number
  /** Lower-case words that select the choice with Enter, in addition to the letter and the digit. */
  words?: readonly string[]
  label: string
  hint?: string
}

/**
 * Time in milliseconds after which a single typed letter or digit counts as an answer. Before that, it may be the start
 * of a word.
 */
export const settleMs = 400

/** A decision that a user makes with keys. */
export interface Decision<T> {
  readonly choices: readonly Choice<T>[]
  /** Index of the choice that Enter selects. */
  readonly focus: number
  /** Text typed so far. */
  readonly typed: string
  /**
   * Index of the choice that the typed text selects. Undefined if no text was typed, or if the text selects no choice.
   */
  readonly named: number | undefined
  /** Replaces the typed text, and moves the focus to the choice that the new text selects, or to the safe choice. */
  type(text: string): void
  /** Moves the focus by a number of choices, and discards the typed text. */
  move(by: number): void
  /**
   * Returns the choice that Enter selects. If the typed text selects no choice, discards the text and returns
   * undefined.
   */
  confirm(): Choice<T> | undefined
}

/** Creates a decision. The focus is on the choice with the value `safe`. */
export function createDecision<T>(choices: readonly Choice<T>[], safe: T): Decision<T> {
  const safeIndex = choices.findIndex(({ value }) => value === safe)
  let focus = safeIndex
  let typed = ""

  function named(): number | undefined {
    const word = typed.trim().toLowerCase()
    const index = choices.findIndex(
      ({ key, digit, words = [] }) => word === key || word === String(digit) || words.includes(word),
    )
    return index < 0 ? undefined : index
  }

  function type(text: string): void {
    typed = text
    focus = named() ?? safeIndex
  }

  return {
    choices,
    get focus() {
      return focus
    },
    get typed() {
      return typed
    },
    get named() {
      return named()
    },
    type,
    move(by) {
      typed = ""
      focus = (focus + by + choices.length) % choices.length
    },
    confirm() {
      const index = typed.trim() === "" ? focus : named()
      if (index === undefined) type("")
      return index === undefined ? undefined : choices[index]
    },
  }
}

/** Returns true if the text contains only printable characters, so that it can be part of a typed answer. */
export function isPrintable(text: string): boolean {
  return /^[^\p{Cc}\p{Cf}]+$/u.test(text)
}
