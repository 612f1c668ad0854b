import { wildcardMatch } from "../../util/wildcard.ts"
import { type Arguments, findOptions, type GivenOption, readArguments } from "./arguments.ts"
import { unhiddenByOptions } from "./directory-files.ts"
import type { OperandRole, Program } from "./program.ts"
import { findProgram } from "./program-table.ts"
import { literalWord, type Word } from "./words.ts"

/** How a command reads directories. The fields correspond to {@link RecursiveReading}. */
export interface WholeReading {
  hidden: boolean
  unhidden?: readonly string[]
  followsLinks?: boolean
  /** Selects files by name. If undefined, all files are selected. */
  selects?: (name: string) => boolean
  /** True if the names of files must not contain blanks, quotes or backslashes, and must not start with a dash. */
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
 * Returns the words that may name files. If all options are known, these words are the operands, without the pattern of
 * a program such as `grep`. Otherwise, all words may name files.
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

/**
 * Returns the files that a command may name in the values of options: in a value after bundled options, in a part of a
 * value, and in a value after the first operand.
 */
export function filesInValues(name: string, words: readonly Word[]): Word[] {
  const program = findProgram(name)
  if (!program) return []
  const given = readArguments(words, program)
  const texts = program.texts?.split(" ") ?? []
  const attached = given.options.flatMap(({ name, value, word }) =>
    value && !texts.includes(name) && word.text.endsWith(value.text) && !words.includes(value) ? [value] : [],
  )
  return [...attached, ...laterValues(program, given, words), ...valueFiles(program, given, "reads")]
}

/**
 * Returns the values of options after the first operand. On macOS, programs such as `cut` treat every word after the
 * first operand as a file.
 */
function laterValues({ operands, singleDash }: Program, given: Arguments, words: readonly Word[]): Word[] {
  const first = given.operands[0]
  if (operands !== "reads" || singleDash || !first) return []
  const later = new Set(words.slice(words.indexOf(first)))
  return given.options.flatMap(({ word, value }) => (value && later.has(word) ? [value] : []))
}

/** Returns the files that are named in a part of an option's value. */
export function valueFiles({ values = [] }: Program, given: Arguments, access: "reads" | "writes"): Word[] {
  return values.flatMap((each) => {
    const pattern = each[access]
    const found = pattern ? findOptions(given, each.options) : []
    return found.flatMap(({ value }) =>
      [...(value?.text.matchAll(pattern ?? /$^/g) ?? [])].map(([, text = ""]) => literalWord(text)),
    )
  })
}

/** Devices that contain no data. */
export const harmlessDevice = /^\/dev\/(?:null|zero|stdin|stdout|stderr|fd\/\d+)$/

/** Returns true if every option is known and harmless. */
export function isKnown({ options, unknown }: Arguments): boolean {
  return unknown === undefined && options.every(({ role }) => role === "harmless")
}

/**
 * Returns true if every operand is a file, because an option provides the pattern or because the program needs no
 * pattern.
 */
export function givesPattern({ options }: Arguments): boolean {
  return options.some(({ name }) => ["-e", "--regexp", "--files", "--type-list"].includes(name))
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
