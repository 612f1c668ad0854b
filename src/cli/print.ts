import { stdout } from "./stdout.ts"

/** A line on stdout. */
export function printLine(text: string): void {
  stdout.write(`${text}\n`)
}

/** A value on stdout, for programs: indented at a terminal, one line elsewhere. */
export function printJson(value: unknown): void {
  printLine(JSON.stringify(value, null, stdout.isTTY ? 2 : undefined))
}
