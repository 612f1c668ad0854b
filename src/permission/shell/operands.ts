import { basename } from "node:path"
import { wildcardMatch } from "../../util/wildcard.ts"
import { type Arguments, type GivenOption, readArguments } from "./arguments.ts"
import { unhiddenByOptions } from "./directory-files.ts"
import type { OperandRole, Program } from "./program.ts"
import { findProgram, findSubcommand } from "./program-table.ts"
import type { Word } from "./words.ts"

/** How a command reads directories. The fields correspond to {@link RecursiveReading}. */
export interface WholeReading {
  hidden: boolean
  unhidden?: readonly string[]
  followsLinks?: boolean
  /** Selects files by name. Undefined: every file. */
  selects?: (name: string) => boolean
  /** Whether the names may contain no blanks, quotes, backslashes or leading dashes. */
  plainNames?: boolean
}

/** Returns true for programs that only read their operands. `risksOf` covers options that write. */
export function isReader(name: string): boolean {
  const role = findProgram(name)?.operands
  return role !== undefined && onlyRead.has(role)
}

/** Returns true for programs that read only the names or attributes of their operands. */
export function readsNames(name: string): boolean {
  return findProgram(name)?.operands === "names"
}

/** Returns true for programs that replace the contents of their operands. */
export function isWriter(name: string): boolean {
  return findProgram(name)?.operands === "edits"
}

/** Returns true for programs whose operands are not files. */
export function takesText(name: string): boolean {
  return findProgram(name)?.operands === "text"
}

/**
 * Returns the words that may name files. If all options are known, these are the operands, without the pattern of a
 * program such as `grep`. Otherwise these are all words.
 */
export function fileOperands(name: string, words: readonly Word[]): readonly Word[] {
  const program = findProgram(name)
  if (program?.operands === undefined || !onlyRead.has(program.operands)) return words
  const given = readArguments(words, program)
  if (!isKnown(given)) return words
  const neutral = (typeof program.readOnly === "object" && program.readOnly.neutral) || []
  const operands = given.operands.filter(({ text }) => !neutral.includes(text))
  return program.operands === "pattern" && !givesPattern(given) ? operands.slice(1) : operands
}

/** A file or directory that a command writes, creates, moves or removes. */
export interface WrittenWord {
  word: Word
  /** The source of a copy or move. If the destination is a directory, the written file has the name of the source. */
  from?: Word
}

/**
 * Returns the words that name written files, according to options and operands. The program may also write other files.
 */
export function writtenWords(name: string, words: readonly Word[]): WrittenWord[] {
  const program = findProgram(name)
  return program ? writtenBy(program, words) : []
}

function writtenBy(program: Program, words: readonly Word[]): WrittenWord[] {
  const given = readArguments(words, program)
  const found = program.subcommands && findSubcommand(program, given.operands)
  if (found) return writtenBy(found.program, given.operands.slice(found.words))

  const { options } = given
  // A word that may expand to an option may also be an operand.
  const uncertain = options.flatMap(({ role, word }) => (role === "uncertain" ? [word] : []))
  const operands = [...given.operands, ...uncertain]
  const named = (role: "writes" | "target") =>
    options.flatMap((option) => (option.role === role && option.value ? [option.value] : []))
  const targets = named("target")
  const written: WrittenWord[] = named("writes").map((word) => ({ word }))
  if (options.some(({ role }) => role === "inPlace"))
    written.push(...operands.slice(givesScript(program, given) ? 0 : 1).map((word) => ({ word })))
  if (program.operandPrefix !== undefined)
    written.push(...operands.flatMap((word) => afterPrefix(word, program.operandPrefix ?? "")))
  switch (program.operands) {
    case "edits":
    case "changes":
      return [...written, ...[...targets, ...operands].map((word) => ({ word }))]
    case "copies":
    case "moves": {
      const destination = targets[0] ?? operands.at(-1)
      const sources = targets[0] ? operands : operands.slice(0, -1)
      const removed = program.operands === "moves" ? sources.map((word) => ({ word })) : []
      const made = destination ? sources.map((from) => ({ word: destination, from })) : []
      return [...written, ...removed, ...made]
    }
    default:
      return [...written, ...targets.map((word) => ({ word }))]
  }
}

/** Returns the name that a copied file has in the destination directory. */
export function nameWithin(from: Word): string {
  return basename(from.text) || "."
}

/** Devices that contain no data. */
export const harmlessDevice = /^\/dev\/(?:null|zero|stdin|stdout|stderr|fd\/\d+)$/

/** Returns true if every option is known and harmless. */
export function isKnown({ options, unknown }: Arguments): boolean {
  return unknown === undefined && options.every(({ role }) => role === "harmless")
}

/** Returns true if an option provides the pattern or no pattern is needed, so that every operand is a file. */
export function givesPattern({ options }: Arguments): boolean {
  return options.some(({ name }) => ["-e", "--regexp", "--files", "--type-list"].includes(name))
}

function givesScript({ script }: Program, { options }: Arguments): boolean {
  return !script || options.some(({ role, name }) => role === "script" || name === "-f" || name === "--file")
}

function afterPrefix(word: Word, prefix: string): WrittenWord[] {
  return word.text.startsWith(prefix) ? [{ word: { ...word, text: word.text.slice(prefix.length) } }] : []
}

/** Returns true if a program reads the contents of its directory operands, or of its working directory. */
export function readsDirectories({ directories }: Program, words: readonly Word[]): boolean {
  if (!directories) return false
  const { when } = directories
  return !when || words.some((word) => when.test(word.text))
}

/** Returns true if a program follows links inside a directory. */
export function followsLinks({ directories }: Program, words: readonly Word[]): boolean {
  if (!directories) return false
  const has = (option: RegExp) => words.some((word) => option.test(word.text))
  const { followsUnless, follows = usualFollows } = directories
  return followsUnless ? !has(followsUnless) : has(follows)
}

const usualFollows = /^-(?:[A-Za-z]*L|-(?:copy-links|deref|follow))/

/** Returns how a command with these options reads directories. */
export function wholeReading(
  program: Program,
  words: readonly Word[],
  options: readonly GivenOption[],
): WholeReading {
  const { hidden, unhides, filters } = program.directories ?? {}
  return {
    selects: filters ? nameFilter(options) : undefined,
    hidden: hidden === undefined || options.some(({ name }) => hidden.includes(name)),
    unhidden: unhides ? unhiddenByOptions(options) : undefined,
    followsLinks: followsLinks(program, words),
  }
}

/** Returns true for the options of `grep` that select files by name. */
export function isNameFilter(option: string): boolean {
  return option === "--include" || option === "--exclude"
}

/**
 * Returns a filter for the names that `--include` and `--exclude` select. The last matching option decides. A name that
 * no option matches is selected unless the first option includes. An exclusion with a path is ignored.
 */
function nameFilter(options: readonly GivenOption[]): ((name: string) => boolean) | undefined {
  const filters = options.flatMap(({ name, value }) => {
    const included = name === "--include"
    if (!value || !isNameFilter(name) || (value.glob && !included)) return []
    const glob = /[/[{\\\s]/.test(value.text) ? undefined : value.text
    return glob === undefined && !included ? [] : [{ included, glob: glob ?? "*" }]
  })
  const [first] = filters
  if (!first) return undefined
  return (name) => filters.findLast(({ glob }) => wildcardMatch(name, glob))?.included ?? !first.included
}

const onlyRead: ReadonlySet<OperandRole> = new Set<OperandRole>(["reads", "names", "text", "pattern"])
