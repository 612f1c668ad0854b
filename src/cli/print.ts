/** A line on stdout. */
export function printLine(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** A value on stdout, for programs: indented at a terminal, one line elsewhere. */
export function printJson(value: unknown): void {
  printLine(JSON.stringify(value, null, process.stdout.isTTY ? 2 : undefined))
}
