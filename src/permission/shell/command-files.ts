import { basename, isAbsolute, join, resolve } from "node:path"
import { externalChecks, fileChecks, fromRoot, isThere, isWithin } from "../place.ts"
import { namesProtected, protectionOf } from "../protected.ts"
import type { Check } from "../request.ts"
import { type CommandPlace, coversAll, expandWord, tableName } from "./command-forms.ts"
import { globFiles } from "./glob-files.ts"
import type { PlannedCommand, PlannedFile } from "./plan.ts"
import { risksOf } from "./programs.ts"
import { fileOperands, isReader, takesText } from "./read-only.ts"
import { literalWord, type Word } from "./words.ts"
import { innerCommands } from "./wrappers.ts"

/** Devices that hold nothing and lead nowhere. */
const harmlessDevice = /^\/dev\/(?:null|zero|stdin|stdout|stderr|fd\/\d+)$/

/** Options whose value is a text for people, whatever it looks like. */
const textOptions: Readonly<Record<string, readonly string[]>> = {
  git: ["-m", "--message"],
  gh: ["-b", "-t", "--body", "--title"],
}

/** Programs whose operands are files that they write. */
const writers = new Set(["tee", "truncate", "touch"])

/**
 * What the words of a command ask for as files: `read` for each that names a file, `edit` for protected ones and for
 * what it is known to write, `external_directory` for what lies outside or cannot be told. `directories` are the places
 * it may run in, absolute; undefined where that is not known.
 */
export async function commandFileChecks(
  command: PlannedCommand,
  directories: readonly string[] | undefined,
  place: CommandPlace,
): Promise<Check[]> {
  const [program, ...words] = command.argv
  const name = program ? tableName(program, place) : ""
  if (!program || takesText(name)) return []
  const somewhere = directories ? [] : [unknownPlace(command), unknownRead(command.pattern)]
  // What a wrapper runs is in the plan as a command of its own, with these same words.
  const wraps =
    name !== "find" && innerCommands(name, words).some(({ kind }) => kind === "argv" || kind === "shell")
  const operands = fileOperands(name, words)
  // Where all options are known the script is not among them any more.
  const texts = operands === words ? withoutScript(name, withoutTexts(name, words)) : operands
  const considered = wraps ? [] : texts
  const checks = await wordsChecks(considered, { name, directories, place })
  return [...somewhere, ...checks, ...scriptChecks(basename(name), words, directories, place)]
}

/** Reads of the files whose names stand in the text of a program: as far as one can see, for that text may make names. */
function scriptChecks(
  name: string,
  words: readonly Word[],
  directories: readonly string[] | undefined,
  place: CommandPlace,
): Check[] {
  if (risksOf(name, words).length === 0) return []
  const texts = words.filter(({ text }) => /[\s()'"{}]/.test(text) || /^\d*[rR]/.test(text))
  const names = texts.flatMap(
    ({ text }) => text.replaceAll(/(?<=^|[;{\s])\d*[rRwW](?=\S*\/)/g, " ").match(/[\w.~/-]+/g) ?? [],
  )
  const mentioned = names.filter((each) => looksLikePath(each) || protectionOf(each, "read") !== undefined)
  return [...new Set(mentioned)]
    .slice(0, maxMentioned)
    .filter(isPossibleName)
    .flatMap((each) => placesOf(each, literalWord(each), directories) ?? [])
    .flatMap((path) => fileChecks("read", path, place).filter((check) => check.permission === "read"))
}

/** So many names in the text of a program are looked at. */
const maxMentioned = 50

/** What the shell itself opens, and what a loop goes through. */
export async function plannedFileChecks(
  { kind, target }: PlannedFile,
  directories: readonly string[] | undefined,
  place: CommandPlace,
): Promise<Check[]> {
  if (kind === "mention") return wordsChecks([target], { name: "", directories, place })
  const access = kind === "read" ? "read" : "edit"
  if (harmlessDevice.test(target.text) && !target.dynamic) return []
  if (target.dynamic || target.glob)
    return [unknownFile(access, target), unknownFile("external_directory", target)]
  const paths = placesOf(expandWord(target, place.home), target, directories)
  if (!paths) return [unknownFile(access, target), unknownFile("external_directory", target)]
  return paths.flatMap((path) => fileChecks(access, path, place))
}

interface WordContext {
  name: string
  directories: readonly string[] | undefined
  place: CommandPlace
}

async function wordsChecks(words: readonly Word[], context: WordContext): Promise<Check[]> {
  const checks: Check[] = []
  for (const word of words) {
    if (word.contained) continue
    if (word.dynamic)
      checks.push(unknownFile("external_directory", word), unknownRead(word.text), ...knownByName(word))
    else
      for (const text of candidates(word, context.place.home))
        checks.push(...(await textChecks(text, word, context)))
  }
  return checks
}

async function textChecks(text: string, word: Word, context: WordContext): Promise<Check[]> {
  const { name, directories, place } = context
  if (/^[A-Za-z][\w+.-]*:\/\//.test(text) || harmlessDevice.test(text)) return []
  // Where the command runs is not known: that asks once for all of its words.
  const start = word.glob ? globDirectory(text) : text
  const paths = start === undefined ? undefined : placesOf(start, literalWord(start), directories)
  if (start !== undefined && !paths) return []
  if (!paths) return [unknownFile("external_directory", word)]
  if (!word.glob) return paths.flatMap((path) => pathChecks(path, text, name, place))

  const checks = paths.flatMap((path) => [
    ...externalChecks(path, place),
    possibleFile(text, word, path, place),
  ])
  for (const directory of isAbsolute(text) ? ["/"] : (directories ?? [])) {
    const files = await globFiles(text, directory)
    if (!files) checks.push(unknownFile("read", word))
    for (const file of files ?? []) checks.push(...pathChecks(resolve(directory, file), file, name, place))
  }
  return checks
}

function pathChecks(path: string, text: string, name: string, place: CommandPlace): Check[] {
  const relative = fromRoot(path, place)
  const mentioned =
    looksLikePath(text) ||
    isReader(name) ||
    writers.has(name) ||
    protectionOf(relative, "edit") !== undefined ||
    isThere(path, place)
  if (!mentioned && isWithin(path, place)) return []
  const checks = fileChecks("read", path, place)
  const changes = writers.has(name) || (!isReader(name) && name !== "" && name !== "git")
  if (!changes) return checks
  const edits = fileChecks("edit", path, place).filter((check) => check.permission === "edit")
  return [...checks, ...edits.filter((check) => writers.has(name) || check.protection !== undefined)]
}

/** A deny that may hold for one of the files that a pattern stands for makes it ask, whether the file is there or not. */
function possibleFile(text: string, word: Word, directory: string, place: CommandPlace): Check {
  const span = join(directory, (word.span.split("/").at(-1) ?? "*") || "*")
  const deep = text.slice(text.search(/[*?[]/)).includes("/") ? join(directory, "*") : span
  const relative = fromRoot(deep, place)
  return {
    permission: "read",
    pattern: text,
    forms: [relative, deep],
    options: { span: relative, spanRefusals: ["deny"] },
  }
}

/** The word itself and the parts of it that an option may take as a path. */
export function candidates(word: Word, home: string): string[] {
  const text = word.base === "directory" ? `.${word.tail ?? ""}` : expandWord(word, home)
  if (text === "" || text === "-" || text === "--") return []
  const found = text.startsWith("-") ? [] : [text]
  const equals = text.indexOf("=")
  if (equals !== -1) found.push(text.slice(equals + 1))
  if (/^-[^-]/.test(text) && equals === -1) {
    const attached = text.slice(2)
    if (looksLikePath(attached)) found.push(attached)
    if (attached.includes("/")) found.push(text.slice(text.indexOf("/")))
  }
  const address = /^file:(?:\/\/[^/]*)?(\/.*)$/is.exec(text)?.[1]
  if (address !== undefined) found.push(address)
  // `name=@file`, `from:to`, `type=bind,src=place`: whatever stands between such marks may be a path.
  else if (!text.includes("://") && /[:@,=]/.test(text)) {
    const parts = text.split(/[=:,@]+/)
    found.push(
      ...parts.slice(text.startsWith("-") ? 1 : 0),
      ...parts.slice(1).map((_, at) => tailAfter(text, at)),
    )
  }
  return found
    .filter((part) => part !== "" && isPossibleName(part))
    .map((part) => (part === "~" || part.startsWith("~/") ? `${home}${part.slice(1)}` : part))
}

/** What follows the mark of this number, marks and all: file names may hold them too. */
function tailAfter(text: string, number: number): string {
  const mark = [...text.matchAll(/[=:,@]+/g)][number]
  return mark ? text.slice(mark.index + mark[0].length) : ""
}

/** The system refuses longer names, so a long text is none. */
function isPossibleName(text: string): boolean {
  return text.length <= 4_096 && text.split("/").every((segment) => Buffer.byteLength(segment) <= 255)
}

/** The directory in which a pattern of file names starts; undefined where it climbs out again after its first star. */
function globDirectory(text: string): string | undefined {
  const at = text.search(/[*?[]/)
  if (text.slice(at).split("/").includes("..")) return undefined
  const slash = text.lastIndexOf("/", at)
  return slash === -1 ? "." : text.slice(0, slash) || "/"
}

/** The absolute paths that a text may name. `..` stays in it. */
export function placesOf(
  text: string,
  word: Word,
  directories: readonly string[] | undefined,
): string[] | undefined {
  const own = word.base === "directory" ? `.${word.tail ?? ""}` : text.replace(ownDirectory, "./")
  if (isAbsolute(own)) return [own]
  return directories?.map((directory) => `${directory}/${own}`)
}

/** Where a process stands, by the name that the system gives it: for the command that is not where the engine stands. */
const ownDirectory =
  /^\/+(?:\.\/+)*proc\/+(?:\.\/+)*(?:thread-)?self\/+(?:\.\/+)*(?:task\/+\d+\/+)?cwd(?:\/+|$)/

function looksLikePath(text: string): boolean {
  return text.includes("/") || text.startsWith(".")
}

/** Which file it is will be known only when the command runs: only a rule for all files allows it. */
function unknownFile(permission: string, word: Word): Check {
  return {
    permission,
    pattern: word.text,
    forms: [word.text],
    options: { counts: coversAll, span: "*" },
    reason: "which file it is will be known only when the command runs",
  }
}

/** Wherever it lies: its name says that it is protected, as in `$DIR/.env` and `/proc/$PPID/environ`. */
function knownByName(word: Word): Check[] {
  const protection = protectionOf(word.span, "read")
  if (!protection) return []
  return [
    {
      permission: "read",
      pattern: word.text,
      forms: [word.text],
      options: { counts: (rule) => namesProtected(rule.pattern, protection) },
      protection: protection.reason,
    },
  ]
}

/** It may be any file: a rule that denies reading one makes it ask. */
function unknownRead(pattern: string): Check {
  return {
    permission: "read",
    pattern,
    forms: [pattern],
    options: { span: "*", spanRefusals: ["deny"] },
    reason: "which file it is will be known only when the command runs",
  }
}

function unknownPlace(command: PlannedCommand): Check {
  return {
    permission: "external_directory",
    pattern: command.pattern,
    forms: [command.pattern],
    options: { counts: coversAll, span: "*" },
    reason: "where it runs cannot be told",
  }
}

function withoutTexts(name: string, words: readonly Word[]): readonly Word[] {
  const options = Object.hasOwn(textOptions, name) ? textOptions[name] : undefined
  if (!options) return words
  return words.filter((_, index) => !options.includes(words[index - 1]?.text ?? ""))
}

/** The script of `sed` and `awk` looks like a path and is none. */
function withoutScript(name: string, words: readonly Word[]): readonly Word[] {
  if (!scripted.has(name)) return words
  const given = words.some((word) => /^-(?:-expression|-source|-file|[A-Za-z]*[ef])/.test(word.text))
  const isScript = ({ text }: Word, index: number) =>
    !text.startsWith("-") && !/^-[vF]$/.test(words[index - 1]?.text ?? "")
  const script = given ? undefined : words.find(isScript)
  return words.filter(
    (word, index) =>
      word !== script && !/^-(?:-expression|-source|[A-Za-z]*e)$/.test(words[index - 1]?.text ?? ""),
  )
}

const scripted = new Set(["sed", "awk", "gawk", "mawk", "nawk"])
