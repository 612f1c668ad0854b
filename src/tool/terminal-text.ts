import { stripVTControlCharacters } from "node:util"

/** What no text needs: control characters but tab and newline. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const controls = /[\x00-\x08\x0b-\x1f\x7f]/g

/**
 * What a terminal would show in the end of what a program wrote to it: no colours and cursor moves, of a line that was
 * rewritten again and again (`\r`, as by a progress bar) only the last state. Keeps the number of lines.
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
