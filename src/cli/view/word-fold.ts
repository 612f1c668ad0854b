import { columns } from "./visible.ts"

/** Wraps text between words as it arrives. */
export interface WordFold {
  /** Returns the text that can be shown now: everything except an unfinished word. */
  push(text: string): string
  /** Returns the rest. The next text starts a line. */
  end(): string
}

/**
 * Wraps prose for a terminal. Code and tables (fenced, indented, or between bars) and longer words stay unchanged.
 * Calls `width` for each word.
 */
export function createWordFold(width: () => number): WordFold {
  let column = 0
  let blank = ""
  let word = ""
  /** The beginning of the line, which determines its kind. */
  let head = ""
  let fenced = false

  function flush(): string {
    const wraps = column > 0 && isProse() && column + columns(blank + word) > width()
    const shown = wraps ? `\n${word}` : blank + word
    column = wraps ? columns(word) : column + columns(shown)
    blank = ""
    word = ""
    return shown
  }

  function isProse(): boolean {
    return !fenced && !/^(?:[ \t|]|```)/.test(head)
  }

  function endLine(): string {
    const shown = `${flush()}\n`
    if (head.startsWith("```")) fenced = !fenced
    column = 0
    head = ""
    return shown
  }

  function take(character: string): string {
    if (character === "\n") return endLine()
    if (head.length < 3) head += character
    if (character !== " ") {
      word += character
      return ""
    }
    const shown = word === "" ? "" : flush()
    blank += " "
    return shown
  }

  return {
    push: (text) => [...text].map(take).join(""),
    end() {
      const shown = flush()
      column = 0
      head = ""
      fenced = false
      return shown
    },
  }
}

/** Does the same for a complete text. */
export function foldWords(text: string, width: number): string {
  const { push, end } = createWordFold(() => width)
  return push(text) + end()
}
