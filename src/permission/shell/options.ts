import type { Word } from "./words.ts"

/**
 * The options of a program, written in one line: `-a` takes no value, `-n:` takes one (attached or the next word),
 * `-i?` may have one attached; `--all`, `--lines=` and `--color?` likewise.
 */
export interface OptionSpec {
  options: string
  /** What follows the first operand belongs to another command. */
  stopsAtOperand?: boolean
  /** Words with one dash are single options, as with `find`. */
  singleDash?: boolean
  /** `-20` is an option. */
  numbers?: boolean
}

/** The words after a program's name, sorted. `unknown`: the first word that the table does not know. */
export interface ScannedArguments {
  options: { name: string; value?: Word }[]
  operands: Word[]
  unknown?: Word
}

/** Sorts words into options and operands by the table. Abbreviated options are unknown. */
export function scanArguments(words: readonly Word[], spec: OptionSpec): ScannedArguments {
  const table = tableOf(spec.options)
  const result: ScannedArguments = { options: [], operands: [] }
  for (let index = 0; index < words.length; index++) {
    const word = words[index]
    if (!word) break
    if (word.text === "--" && !spec.singleDash) {
      result.operands.push(...words.slice(index + 1))
      break
    }
    if (mayBeOption(word) && (word.dynamic || word.glob)) return { ...result, unknown: word }
    if (!word.text.startsWith("-") || word.text === "-") {
      if (spec.stopsAtOperand) {
        result.operands.push(...words.slice(index))
        break
      }
      result.operands.push(word)
      continue
    }
    const read = readOption(word, words[index + 1], table, spec)
    if (!read) return { ...result, unknown: word }
    result.options.push(...read.options)
    if (read.tookNext) index += 1
  }
  return result
}

/** True if the word may turn out to start with a dash. */
export function mayBeOption(word: Word): boolean {
  if (word.base !== undefined) return false
  return word.text.startsWith("-") || word.splits || /^[*?]/.test(word.span)
}

/** Whether an option takes a value: never, always, or only an attached one. */
type ValueKind = "none" | "required" | "attached"

const tables = new Map<string, ReadonlyMap<string, ValueKind>>()

function tableOf(options: string): ReadonlyMap<string, ValueKind> {
  const known = tables.get(options)
  if (known) return known
  const table = new Map<string, ValueKind>()
  for (const token of options.split(/\s+/)) {
    const kind = /[:=]$/.test(token) ? "required" : token.endsWith("?") ? "attached" : "none"
    if (token !== "") table.set(kind === "none" ? token : token.slice(0, -1), kind)
  }
  tables.set(options, table)
  return table
}

interface ReadOption {
  options: { name: string; value?: Word }[]
  tookNext: boolean
}

function readOption(
  word: Word,
  next: Word | undefined,
  table: ReadonlyMap<string, ValueKind>,
  spec: OptionSpec,
): ReadOption | undefined {
  if (spec.numbers && /^-\d+$/.test(word.text)) return { options: [{ name: "-number" }], tookNext: false }
  if (spec.singleDash || word.text.startsWith("--")) return readWhole(word, next, table)
  return readBundle(word, next, table)
}

function readWhole(
  word: Word,
  next: Word | undefined,
  table: ReadonlyMap<string, ValueKind>,
): ReadOption | undefined {
  const equals = word.text.indexOf("=")
  const name = equals === -1 ? word.text : word.text.slice(0, equals)
  const kind = table.get(name)
  if (kind === undefined) return undefined
  if (equals !== -1) {
    if (kind === "none") return undefined
    return { options: [{ name, value: { ...word, text: word.text.slice(equals + 1) } }], tookNext: false }
  }
  if (kind !== "required") return { options: [{ name }], tookNext: false }
  return next && !next.splits ? { options: [{ name, value: next }], tookNext: true } : undefined
}

function readBundle(
  word: Word,
  next: Word | undefined,
  table: ReadonlyMap<string, ValueKind>,
): ReadOption | undefined {
  const options: ReadOption["options"] = []
  for (let at = 1; at < word.text.length; at++) {
    const name = `-${word.text[at]}`
    const kind = table.get(name)
    const rest = word.text.slice(at + 1)
    if (kind === undefined) return undefined
    if (kind === "none") {
      options.push({ name })
      continue
    }
    if (rest !== "")
      return { options: [...options, { name, value: { ...word, text: rest } }], tookNext: false }
    if (kind === "attached") return { options: [...options, { name }], tookNext: false }
    return next && !next.splits ? { options: [...options, { name, value: next }], tookNext: true } : undefined
  }
  return { options, tookNext: false }
}
