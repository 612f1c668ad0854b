import { columns } from "./visible.ts"

/** Stream wrapper that wraps text between words as it arrives. */
export interface WordFold {
  /** Adds text, and returns the text that can be shown now. Holds back an unfinished word. */
  push(text: string): string
  /** Returns the remaining text. The next text starts a new line. */
  end(): string
}

/**
 * Creates a wrapper for prose at a terminal. Does not change code, tables (fenced, indented or between bars) or long
 * words. Calls `width` for each word.
 */
export function createWordFold(width: () => number): WordFold {
  let column = 0
  let blank = ""
  let word = ""
  /** Beginning of the current line, which determines whether it is prose, code or a table. */
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

/** Wraps a complete text like {@link createWordFold}. */
export function foldWords(text: string, width: number): string {
  const { push, end } = createWordFold(() => width)
  return push(text) + end()
}
