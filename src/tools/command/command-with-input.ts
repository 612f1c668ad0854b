/**
 * A command and what is written to its input as one text of shell, so that the rules judge the input by what the command
 * makes of it: a shell that reads it runs it, `wc` only counts it.
 */
export function commandWithInput(command: string, text: string): string {
  const lines = text.split("\n")
  let mark = "END_OF_INPUT"
  while (lines.includes(mark)) mark += "_"
  return `{ ${command}\n} <<'${mark}'\n${text.endsWith("\n") ? text : `${text}\n`}${mark}`
}
