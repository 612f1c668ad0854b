import { createInterface } from "node:readline"
import type { MultiSelectOptions, Option, SelectOptions, TextOptions } from "@clack/prompts"
import { oneLine } from "../../view/visible.ts"

/** The prompts that can be shown in every terminal. */
export interface Prompts {
  text(
    options: Omit<TextOptions, "validate"> & { validate?(text: string | undefined): string | undefined },
  ): Promise<string | symbol>
  select<T>(options: SelectOptions<T>): Promise<T | symbol>
  multiselect<T>(options: MultiSelectOptions<T>): Promise<T[] | symbol>
  /** Like `select`, with a filter where the terminal can show one. */
  autocomplete<T>(options: SelectOptions<T>): Promise<T | symbol>
}

/** Returned if the user dismisses a prompt, stdin ends or the signal aborts. */
const dismissed = Symbol("dismissed")

/**
 * Prompts for a terminal that only appends lines. They accept the same options as clack's prompts, and the user answers
 * each of them with one line. An empty line dismisses a selection.
 */
export const linePrompts: Prompts = { text, select, multiselect, autocomplete: select }

async function text({
  message,
  initialValue,
  validate,
  signal,
}: Parameters<Prompts["text"]>[0]): Promise<string | symbol> {
  write(initialValue ? `${message} [${initialValue}]` : message)
  for (;;) {
    const line = await readLine(signal)
    if (line === undefined) return dismissed
    const problem = validate?.(line)
    if (problem === undefined) return line
    write(problem)
  }
}

async function select<T>({ message, options, signal }: SelectOptions<T>): Promise<T | symbol> {
  const chosen = await choose<T>({ message, options, signal, isMultiple: false })
  return chosen?.[0] === undefined ? dismissed : chosen[0].value
}

async function multiselect<T>({ message, options, signal }: MultiSelectOptions<T>): Promise<T[] | symbol> {
  const chosen = await choose<T>({ message, options, signal, isMultiple: true })
  return chosen?.map(({ value }) => value) ?? dismissed
}

async function choose<T>({
  message,
  options,
  signal,
  isMultiple,
}: {
  message: string
  options: readonly Option<T>[]
  signal: AbortSignal | undefined
  isMultiple: boolean
}): Promise<Option<T>[] | undefined> {
  write(message)
  for (const [index, { label, value, hint }] of options.entries())
    write(`  ${index + 1}  ${label ?? String(value)}${hint === undefined ? "" : ` (${hint})`}`)
  const numbers = isMultiple ? "numbers with spaces between them" : "a number"
  write(`Type ${numbers} and press Enter. An empty line dismisses the question.`)
  for (;;) {
    const line = (await readLine(signal)) ?? ""
    if (line === "") return undefined
    const words = isMultiple ? line.split(/[\s,]+/).filter((word) => word !== "") : [line]
    const unknown = words.find((word) => !options[Number(word) - 1])
    if (unknown === undefined) return [...new Set(words)].flatMap((word) => options[Number(word) - 1] ?? [])
    write(`"${oneLine(unknown, 40)}" is not a number from 1 to ${options.length}. Type ${numbers}.`)
  }
}

function write(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** Returns the next line of stdin without spaces around it. Returns undefined if stdin ends or the signal aborts. */
function readLine(signal: AbortSignal | undefined): Promise<string | undefined> {
  if (signal?.aborted || process.stdin.readableEnded) return Promise.resolve(undefined)
  return new Promise((resolve) => {
    const lines = createInterface({ input: process.stdin, terminal: false })
    const stop = () => lines.close()
    signal?.addEventListener("abort", stop, { once: true })
    lines.once("line", (line) => {
      resolve(line.trim())
      lines.close()
    })
    lines.once("close", () => {
      signal?.removeEventListener("abort", stop)
      resolve(undefined)
    })
  })
}
