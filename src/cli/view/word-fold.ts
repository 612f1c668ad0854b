import { columns } from "./visible.ts"

/** Breaks text between words while it comes in. */
export interface WordFold {
  /** What can be shown by now: all but a word that may go on. */
  push(text: string): string
  /** The rest. The next text begins a line. */
  end(): string
}

/**
 * For prose on a terminal, which would break it within words. Code and tables (fenced, further in, or between bars) stay
 * as they are, and so does a word that is wider than the terminal. `width` is asked at each word.
 */
export function createWordFold(width: () => number): WordFold {
  let column = 0
  let blank = ""
  let word = ""
  /** The line so far, as far as it tells what kind of line it is. */
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

/** The same for a text that is there already. */
export function foldWords(text: string, width: number): string {
  const { push, end } = createWordFold(() => width)
  return push(text) + end()
}
