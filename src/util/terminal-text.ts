import { stripVTControlCharacters } from "node:util"

/** Control characters except tab and newline. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: this removes control characters
const controls = /[\x00-\x08\x0b-\x1f\x7f]/g

/**
 * Returns approximately the text that a terminal would show at the end, without colors and cursor movement. For a line
 * that was rewritten with `\r`, such as a progress bar, keeps only the text after the last `\r`. Preserves the number
 * of lines.
 */
export function terminalText(text: string): string {
  const plain = text.includes("\u001b") || text.includes("\u009b") ? stripVTControlCharacters(text) : text
  const settled = plain.includes("\r") ? plain.split("\n").map(lastState).join("\n") : plain
  return settled.replace(controls, "")
}

function lastState(line: string): string {
  const end = line.replace(/\r+$/, "")
  return end.slice(end.lastIndexOf("\r") + 1)
}
