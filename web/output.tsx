import { useState } from "preact/hooks"
import { counted } from "../src/util/words.ts"

/** Number of lines of a long text that are shown at first. */
const shortLines = 16

/**
 * A program's output: plain text without terminal escapes. Shows only the start or the end of a long text until the
 * user expands it.
 */
export function Output({
  text,
  from = "end",
  label,
}: {
  text: string
  from?: "start" | "end"
  label: string
}) {
  const [isLong, setLong] = useState(false)
  const lines = plainText(text).replace(/\n+$/, "").split("\n")
  const hidden = isLong ? 0 : Math.max(0, lines.length - shortLines)
  const shown = hidden === 0 ? lines : from === "end" ? lines.slice(hidden) : lines.slice(0, -hidden)
  if (lines.length === 1 && lines[0] === "") return null
  const more = hidden > 0 && (
    <button type="button" class="more-lines" onClick={() => setLong(true)}>
      Show {counted(hidden, from === "end" ? "earlier line" : "more line")}
    </button>
  )
  return (
    <div class="output">
      {from === "end" && more}
      <pre tabIndex={0} role="region" aria-label={label}>
        {shown.join("\n")}
      </pre>
      {from === "start" && more}
      {isLong && lines.length > shortLines && (
        <button type="button" class="more-lines" onClick={() => setLong(false)}>
          Show less
        </button>
      )}
    </div>
  )
}

/** Escape sequences of a terminal: strings such as titles and links, control sequences, and single characters. */
const sequences =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: this removes control characters
  /(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[\s\S]*?(?:\x07|\x1b\\|\x9c|$)|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?/g

// biome-ignore lint/suspicious/noControlCharactersInRegex: this removes control characters
const controls = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g

/**
 * Returns approximately the text that a terminal would show at the end, without colors. For a rewritten line, keeps
 * only the text after the last carriage return.
 */
function plainText(text: string): string {
  const settled = text
    .replace(sequences, "")
    .split("\n")
    .map((line) => {
      const end = line.replace(/\r+$/, "")
      return end.slice(end.lastIndexOf("\r") + 1)
    })
  return settled.join("\n").replace(controls, "")
}
