/** Splits a stream of text into lines. */
export interface LineSplitter {
  push(text: string): void
  /** Emits the last line if it does not end with a line feed. */
  end(): void
}

/**
 * Creates a splitter. Lines end with LF or CRLF. The line ending is not part of the line. To limit memory, keeps only
 * the first `maxLength` UTF-16 units of a line, without splitting a surrogate pair. `onLine` receives the kept text,
 * and the length of the whole line in UTF-16 units.
 */
export function createLineSplitter(
  maxLength: number,
  onLine: (line: string, length: number) => void,
): LineSplitter {
  let kept = ""
  let length = 0
  let last = ""

  function add(piece: string): void {
    if (piece === "") return
    if (kept.length < maxLength) kept += piece.slice(0, maxLength - kept.length)
    length += piece.length
    last = piece.slice(-1)
  }

  function finish(): void {
    if (last === "\r") length -= 1
    const line = length > maxLength ? cutText(kept, maxLength) : kept.slice(0, length)
    kept = ""
    last = ""
    const whole = length
    length = 0
    onLine(line, whole)
  }

  return {
    push(text) {
      let start = 0
      for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", start)) {
        add(text.slice(start, end))
        finish()
        start = end + 1
      }
      add(text.slice(start))
    },
    end() {
      if (length > 0) finish()
    },
  }
}

/** Returns the first `maxLength` UTF-16 units of the text, without splitting a surrogate pair. */
export function cutText(text: string, maxLength: number): string {
  const cut = text.slice(0, maxLength)
  const last = cut.charCodeAt(cut.length - 1)
  return last >= 0xd800 && last <= 0xdbff ? cut.slice(0, -1) : cut
}
