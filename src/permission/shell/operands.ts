import { basename } from "node:path"
import { wildcardMatch } from "../../util/wildcard.ts"
import { type Arguments, findOption, findOptions, type GivenOption, readArguments } from "./arguments.ts"
import { unhiddenByOptions } from "./directory-files.ts"
import type { OperandRole, Program } from "./program.ts"
import { findProgram, findSubcommand, isBuildTool, isFormatter } from "./program-table.ts"
import { literalWord, type Word } from "./words.ts"
import { innerCommands } from "./wrapped-commands.ts"

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

/** Returns true for programs that only read their operands. For options that write, see `risksOf`. */
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
 * Returns the words that may name files. For a program that only reads and whose options are all known to be harmless,
 * these words are the operands, without the pattern of a program such as `grep`. Otherwise, all words may name files.
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
 * Returns the files that a command may name in the values of options: in a value that is attached to its option, in a
 * part of a value, and in a value after the first operand.
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
function valueFiles({ values = [] }: Program, given: Arguments, access: "reads" | "writes"): Word[] {
  return values.flatMap((each) => {
    const pattern = each[access]
    const found = pattern ? findOptions(given, each.options) : []
    return found.flatMap(({ value }) =>
      [...(value?.text.matchAll(pattern ?? /$^/g) ?? [])].map(([, text = ""]) => literalWord(text)),
    )
  })
}

/** Returns true if every option is known and harmless. */
export function isKnown({ options, unknown }: Arguments): boolean {
  return unknown === undefined && options.every(({ role }) => role === "harmless")
}

/** Returns true if every operand is a file, because an option provides the pattern or makes it unnecessary. */
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
 * no option matches is selected unless the first option is `--include`. If a glob contains a slash, bracket, brace,
 * backslash or blank, an exclusion is ignored, and an inclusion selects every name.
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

/** A file or directory that a command writes, creates, moves or removes. */
export interface WrittenWord {
  word: Word
  /** The source of a copy or move. If the destination is a directory, the written file has the name of the source. */
  from?: Word
  /** Whether the command writes unknown files below the directory: any file, or only those that git tracks. */
  below?: "any" | "tracked"
  /** The word is written only if none of these words names an existing file. */
  unlessExist?: readonly Word[]
  /** True if it is unknown whether the command writes the word. */
  uncertain?: true
  /** Whether the word is relative to the root of the repository. */
  fromRoot?: true
}

/**
 * Returns the words that name written files, according to options and operands. The program may also write other files.
 * If it is unknown what a program does with its arguments, all words are returned as uncertain.
 */
export function writtenWords(name: string, words: readonly Word[]): WrittenWord[] {
  const program = findProgram(name)
  if (!program) return [...writtenBy(unlisted, words), ...uncertainWords(words)]
  const written = writtenBy(program, words)
  if (program.runsAfter !== undefined && !program.subcommands) written.push(...byInner(name, program, words))
  if (program.stopsAt) written.push(...byModule(words, program.stopsAt))
  if (!isModelled(name, program)) written.push(...uncertainWords(argumentsOf(program, words)))
  return written
}

/** Common options with which a program without an entry writes its operands. */
const unlisted: Program = {
  rewrites:
    "--write --write-changes --fix --fix-all --in-place --inplace --overwrite --autofix --autocorrect --auto-correct",
  whole: true,
}

function writtenBy(program: Program, words: readonly Word[]): WrittenWord[] {
  const { operands } = readArguments(words, program)
  const found = program.subcommands && findSubcommand(program, operands)
  if (found) return writtenBy(found.program, operands.slice(found.words)).flatMap(withoutMagic)
  const { entry, given } = readAction(program, words)
  return writtenWith(entry, given, words)
}

/**
 * Splits the arguments of a program, or of one of its actions, into options and operands. `entry` describes the program
 * with this action.
 */
export function readAction(program: Program, words: readonly Word[]): { entry: Program; given: Arguments } {
  const given = readArguments(words, program)
  const action = program.actions && findSubcommand({ subcommands: program.actions }, given.operands)
  if (!action) return { entry: program, given }
  const entry = withAction(program, action.program)
  const again = readArguments(words, entry)
  return { entry, given: { ...again, operands: again.operands.slice(action.words) } }
}

const merged = new WeakMap<Program, Program>()

/** Returns a program's entry, merged with the fields of one of its actions. */
function withAction(program: Program, action: Program): Program {
  const known = merged.get(action)
  if (known) return known
  const { actions: _, subcommands: __, ...rest } = program
  const entry = { ...rest, ...action }
  merged.set(action, entry)
  return entry
}

function writtenWith(program: Program, given: Arguments, words: readonly Word[]): WrittenWord[] {
  const { options } = given
  const named = (role: "writes" | "target") =>
    options.flatMap((option) => (option.role === role && option.value ? [option.value] : []))
  const written: WrittenWord[] = named("writes").map((word) => ({ word }))
  written.push(...valueFiles(program, given, "writes").map((word) => ({ word })))
  const rewrites = findOption(given, program.rewrites) !== undefined
  if (!rewrites && findOption(given, program.dryRun)) return written

  // A word that may expand to an option may also be an operand.
  const uncertain = options.flatMap(({ role, word }) => (role === "uncertain" ? [word] : []))
  const operands = [...given.operands, ...uncertain]
  const into = findOption(given, program.into)?.value
  const place = into ?? literalWord(".")
  const spreads = spreadsFiles(program, given, words)
  const targets = spreads ? [] : named("target")
  if (spreads)
    written.push({
      word: place,
      below: program.spreads?.tracked ? "tracked" : "any",
      unlessExist: program.spreads?.unlessPaths && operands,
    })
  if (spreads && findOption(given, program.spreads?.anywhere))
    written.push({ word: literalWord("/"), below: "any" })
  const inPlace = options.some(({ role }) => role === "inPlace")
  if (inPlace || rewrites) {
    const changed = operands.slice(givesScript(program, given) ? 0 : 1)
    if (operands.length === 0) written.push({ word: literalWord("."), below: "any" })
    written.push(...changed.map((word) => ({ word })))
  }
  const { operandPrefix, maxOperands } = program
  if (operandPrefix !== undefined)
    written.push(...operands.flatMap((word) => afterPrefix(word, operandPrefix)))
  if (maxOperands !== undefined) written.push(...operands.slice(maxOperands).map((word) => ({ word })))
  if (downloads(program, given)) written.push(...operands.flatMap((url) => downloaded(url, place)))
  return [...written, ...writtenOperands(program, operands, targets)]
}

function writtenOperands(
  program: Program,
  operands: readonly Word[],
  targets: readonly Word[],
): WrittenWord[] {
  switch (program.operands) {
    case "edits":
    case "changes":
      return [...targets, ...operands].map((word) => ({ word }))
    case "first":
      return [...targets, ...operands.slice(0, 1)].map((word) => ({ word }))
    case "clones": {
      const [url, directory] = operands
      const word = directory ?? (url && literalWord(nameOfRepository(url.text)))
      return word ? [{ word, below: "any" }] : []
    }
    case "copies":
    case "moves":
    case "links": {
      const destination = targets[0] ?? operands.at(-1)
      const sources = targets[0] ? operands : operands.slice(0, -1)
      const made = destination ? sources.map((from) => ({ word: destination, from })) : []
      if (program.operands === "copies") return made
      const uncertain = program.operands === "links" ? (true as const) : undefined
      return [...sources.map((word) => ({ word, uncertain })), ...made]
    }
    default:
      return targets.map((word) => ({ word }))
  }
}

function spreadsFiles({ spreads, into }: Program, given: Arguments, words: readonly Word[]): boolean {
  if (!spreads) return false
  const hasOperands = given.operands.length > 0
  if (spreads.with !== undefined && !findOption(given, spreads.with)) return false
  if (!hasOperands && findOption(given, spreads.unless)) return false
  if (spreads.unlessPaths && words.some(({ text }) => text === "--")) return false
  return !(spreads.unlessOperands && hasOperands && !findOption(given, into))
}

function downloads({ downloads: when }: Program, given: Arguments): boolean {
  if (!when || findOption(given, when.unless)) return false
  return when.with === undefined || findOption(given, when.with) !== undefined
}

/** Returns the files that a download of the URL may create in a directory. */
function downloaded(url: Word, place: Word): WrittenWord[] {
  const path = url.text.replace(/^[a-z][\w+.-]*:\/\//i, "").replace(/[?#].*$/s, "")
  const name = path.includes("/") ? path.slice(path.lastIndexOf("/") + 1) || "index.html" : "index.html"
  if (url.dynamic || /[{}[\]]/.test(name)) return [{ word: place, below: "any" }]
  return [...new Set([name, decoded(name)])].map((each) => ({ word: within(place, each) }))
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    // An incomplete escape is returned unchanged.
    return name
  }
}

/** Returns a word for a name in a directory. */
function within(directory: Word, name: string): Word {
  const text = `${directory.text}/${name}`
  const tail = directory.base === undefined ? undefined : `${directory.tail ?? ""}/${name}`
  return { ...directory, text, span: `${directory.span}/${name}`, tail }
}

/** Returns the name of the directory that `git clone` creates. */
function nameOfRepository(url: string): string {
  const path = url.replace(/\/+$/, "").replace(/\/?\.git$/, "")
  return path.split(/[/:]/).at(-1) || "."
}

/**
 * Removes the magic prefix, such as `:/` or `:(top)`, from a git pathspec. Returns an empty array for a pathspec that
 * excludes files.
 */
function withoutMagic(written: WrittenWord): WrittenWord[] {
  const [whole, magic = ""] =
    /^:(?:\(([^)]*)\)|([!^/]*):?)/.exec(written.word.text)?.map((part) => part ?? "") ?? []
  if (whole === undefined) return [written]
  const short = whole.startsWith(":(") ? "" : whole
  if (/[!^]/.test(short) || magic.split(",").includes("exclude")) return []
  const text = written.word.text.slice(whole.length) || "."
  const fromRoot = short.includes("/") || magic.split(",").includes("top") ? (true as const) : undefined
  return [{ ...written, fromRoot, word: { ...written.word, text } }]
}

/** Returns the name that a copied file has in the destination directory. */
export function nameWithin(from: Word): string {
  return basename(from.text) || "."
}

function givesScript({ script }: Program, { options }: Arguments): boolean {
  return !script || options.some(({ role, name }) => role === "script" || name === "-f" || name === "--file")
}

function afterPrefix(word: Word, prefix: string): WrittenWord[] {
  return word.text.startsWith(prefix) ? [{ word: { ...word, text: word.text.slice(prefix.length) } }] : []
}

/** Returns the files that the inner command of a runner such as `npx` or `npm exec` writes. */
function byInner(name: string, { stopsAtOperand }: Program, words: readonly Word[]): WrittenWord[] {
  const [inner] = innerCommands(name, words)
  if (inner?.kind === "among") return byTool(stopsAtOperand ? words : inner.words, true)
  // `pnpm prettier` runs a program from the project without a word such as `exec`.
  return isBuildTool(name) ? byTool(words, false) : []
}

/** Returns the files that the module of a `python -m` command writes. */
function byModule(words: readonly Word[], option: RegExp): WrittenWord[] {
  const at = words.findIndex(({ text }) => option.test(text))
  const attached = words[at]?.text.replace(option, "")
  if (at === -1) return []
  return byTool([...(attached ? [literalWord(attached)] : []), ...words.slice(at + 1)], true)
}

/**
 * Returns the files that the first known formatter or build tool in the words writes. If none is found and the words
 * contain a command, all words are uncertain.
 */
function byTool(words: readonly Word[], isCommand: boolean): WrittenWord[] {
  const names = words.map(({ text }) => basename(/^(?:@[^/]+\/)?([^@]*)/.exec(text)?.[1] ?? text))
  const at = names.findIndex((name) => isFormatter(name) || (isCommand && isBuildTool(name)))
  const program = findProgram(names[at] ?? "")
  if (program) {
    const rest = words.slice(at + 1)
    const separator = rest.findIndex(({ text }) => text === "--")
    // `npm exec` removes the first `--`.
    return writtenBy(program, separator === -1 ? rest : rest.toSpliced(separator, 1))
  }
  return isCommand ? uncertainWords(words) : []
}

/** Returns true if a program's entry specifies what the program writes, or that it only reads or runs its operands. */
function isModelled(name: string, program: Program): boolean {
  const { operands, writes, targets, rewrites, dryRun, spreads, downloads, operandPrefix } = program
  const { subcommands, script, builtin, wraps, runsAfter } = program
  if (wraps === "unknown") return false
  return (
    isBuildTool(name) ||
    [operands, writes, targets, rewrites, dryRun, spreads, downloads, operandPrefix].some(Boolean) ||
    [subcommands, script, builtin, wraps, runsAfter].some((field) => field !== undefined)
  )
}

/** Returns the words without the script that an interpreter runs. */
function argumentsOf({ stopsAtOperand }: Program, words: readonly Word[]): readonly Word[] {
  // A word after an option may be its value.
  const isScript = ({ text }: Word, index: number) =>
    !text.startsWith("-") && !words[index - 1]?.text.startsWith("-")
  const script = stopsAtOperand ? words.find(isScript) : undefined
  return words.filter((word) => word !== script)
}

/**
 * Returns the words and marks them as uncertain. Omits words that are known only at run time, and words that an option
 * excludes, such as `dist` in `--ignore-pattern dist`.
 */
function uncertainWords(words: readonly Word[]): WrittenWord[] {
  return words.flatMap((word, index) => {
    const isExcluded = excluding.test(word.text) || excluding.test(words[index - 1]?.text ?? "")
    return isExcluded || word.dynamic ? [] : [{ word, uncertain: true as const }]
  })
}

const excluding = /^--?[\w-]*(?:exclude|ignore|skip|omit|without)/i
