import { resolve } from "node:path"
import { wildcardMatch } from "../../util/wildcard.ts"
import { protectionOf } from "../protected-files.ts"
import { readArguments } from "./arguments.ts"
import { hardenedGitEnvironment, isPlainRepository, userHooks } from "./git-repository.ts"
import {
  givesPattern,
  isKnown,
  isNameFilter,
  readsDirectories,
  type WholeReading,
  wholeReading,
} from "./operands.ts"
import { planCommand } from "./plan.ts"
import type { Program } from "./program.ts"
import { findProgram, findSubcommand, gnuName } from "./program-table.ts"
import type { PlannedCommand, ShellPlan } from "./shell-plan.ts"
import { literalWord, type Word } from "./words.ts"
import { wrapperOptions } from "./wrapped-commands.ts"

/** The files that a proved read-only command reads. */
export interface Proof {
  /** Operands that may name files. */
  files: Word[]
  /**
   * How the command reads the contents of the directories in `files`, or of its working directory if `files` is empty.
   */
  recursive?: WholeReading
  /** Whether `files` are the files that the command's standard input names, not the files that its arguments name. */
  fromInput?: true
  /** Whether the command is git, which must run in the hardened environment. */
  git: boolean
  /** Whether the command is git and may print the contents of any tracked file. */
  showsTracked?: boolean
}

/**
 * Proves that a command writes nothing, starts nothing and does not use the network. Requires that every option is
 * known, that every word is literal except for `$HOME` and `$PWD` at its start, and that the program is called by a
 * plain name. Returns undefined if there is no proof. The files that the command reads are judged as `read`.
 */
export function proveReadOnly(command: PlannedCommand): Proof | undefined {
  const listed = command.wrapper?.input && listedFiles(command.wrapper)
  const [program, ...words] = command.argv.map((word) => standIn(word, command, listed !== undefined))
  if (!program || command.opaque !== undefined || command.assignments) return undefined
  if (command.wrapper && !isPlainWrapper(command.wrapper) && !listed) return undefined
  const name = program.text
  // `echo` only prints the names that a glob matches.
  const isKnownWord = (word: Word) => !word.dynamic && (!word.glob || name === "echo" || isPlainGlob(word))
  if (![program, ...words].every(isKnownWord)) return undefined
  const entry = gnuName(name) === name ? findProgram(name) : undefined
  const proof = entry && (entry.subcommands ? proveSubcommand(entry, words) : prove(entry, words))
  // `echo` prints unknown options, so they are harmless.
  if (!proof && name === "echo") return { files: [], git: false }
  if (listed) return proof && readListed(proof, listed, entry)
  return proof && name === "git" ? { ...proof, git: true, showsTracked: showsContents(words) } : proof
}

/** Files whose names `xargs` reads. */
interface ListedFiles {
  /** Directories that contain the files, and files. */
  words: Word[]
  reading: WholeReading
}

/**
 * Returns the files that the standard input of an `xargs` command names. Returns undefined if the files are unknown.
 */
function listedFiles({ argv, input, wrapper }: PlannedCommand): ListedFiles | undefined {
  if (wrapper || gnuName(argv[0]?.text ?? "") !== "xargs") return undefined
  const options = wrapperOptions(argv)
  const delimiters = options.filter(({ name }) => name === "-d" || name === "--delimiter")
  // With any other delimiter, `xargs` would split the output into names other than those of the listed files.
  if (!delimiters.every(({ value }) => value?.text === "\\n" || value?.text === "\n")) return undefined
  let source = input
  while (source?.input && selectsLines(source)) source = source.input
  const [name, ...words] = source?.argv ?? []
  const proof = source && !source.input && proveReadOnly(source)
  if (!proof || !name) return undefined
  const entry = findProgram(name.text)
  const names = entry?.wraps === "find" ? printedNames(words) : undefined
  if (!names && !(entry?.lists && listsFiles(entry, words))) return undefined
  const separated =
    words.some(({ text }) => text === "-print0") &&
    options.some(({ name }) => name === "-0" || name === "--null")
  const roots = proof.files.map((word) => ({ ...word, unquoted: !separated }))
  if (!separated && roots.some(({ text, base }) => base !== undefined || !/^[\w./@%+,=*?-]+$/.test(text)))
    return undefined
  const reading = names ? { hidden: true, selects: names } : proof.recursive
  return {
    words: roots,
    reading: { ...reading, hidden: reading?.hidden ?? true, followsLinks: true, plainNames: !separated },
  }
}

/** Returns true if the command prints only names of files that it reads. */
function listsFiles({ lists, ...program }: Program, words: readonly Word[]): boolean {
  const names = readArguments(words, program).options.map(({ name }) => name)
  const known = lists?.options.split(" ") ?? []
  return names.every((name) => known.includes(name)) && names.some((name) => lists?.requires.includes(name))
}

/** Returns true if the command only selects or sorts the lines of its standard input. */
function selectsLines(command: PlannedCommand): boolean {
  const [name, ...words] = command.argv
  const entry = findProgram(name?.text ?? "")
  const proof = proveReadOnly(command)
  if (entry?.selectsLines === undefined || !proof || proof.recursive || proof.files.length > 0) return false
  const known = entry.selectsLines.split(" ")
  return readArguments(words, entry).options.every(
    (option) => known.includes(option.name) || option.name === "-number",
  )
}

/** Replaces a word that is known only at run time with a literal word, if enough is known about its value. */
function standIn(word: Word, { argv: [program] }: PlannedCommand, isListed: boolean): Word {
  if (word.fromInput && isListed) return { ...literalWord("listed"), glob: true, fromInput: true }
  if (word.stream) return literalWord("/dev/fd/63")
  const role = findProgram(program?.text ?? "")?.operands
  return word.numeric && (role === "text" || role === "names") ? literalWord(word.text) : word
}

/** Returns the proof for a command that reads the files of a list. */
function readListed(
  proof: Proof,
  { words, reading }: ListedFiles,
  entry: Program | undefined,
): Proof | undefined {
  if (proof.git || !proof.files.every((word) => word.fromInput)) return undefined
  if (proof.files.length === 0 || entry?.operands === "names")
    return { files: [], git: false, fromInput: true }
  if (!proof.recursive) return { files: words, recursive: reading, git: false, fromInput: true }
  // For an empty list, `xargs` runs the command without files. It then reads its working directory.
  return {
    files: [...words, literalWord(".")],
    recursive: { ...reading, hidden: true, selects: undefined },
    git: false,
    fromInput: true,
  }
}

/**
 * Returns true for text that contains git and only commands that are proved to only read. The proof that git only reads
 * counts only in such text.
 */
function needsHardenedGit(plan: ShellPlan): boolean {
  const proofs = plan.commands.filter(({ transparent }) => !transparent).map(proveReadOnly)
  return (
    plan.opaque === undefined && !plan.garbled && proofs.every(Boolean) && proofs.some((proof) => proof?.git)
  )
}

/** Returns true for a glob that cannot expand to an option, a hidden file or a secret: `src/*.ts`, but not `*.ts`. */
function isPlainGlob({ text, base }: Word): boolean {
  if (/^--[a-z-]+=/.test(text)) return true
  const hidden = text.split("/").some((segment) => segment.startsWith(".") && /[*?[]/.test(segment))
  return !hidden && !protectionOf(text, "read") && (base !== undefined || /^[\w./~]/.test(text))
}

/** Returns true if no wrapper of a command adds words to it. */
function isPlainWrapper({ argv: [program], transparent, wrapper }: PlannedCommand): boolean {
  const wraps = findProgram(program?.text ?? "")?.wraps
  const isPlain = transparent === true && typeof wraps === "object" && !wraps.appends
  return isPlain && (!wrapper || isPlainWrapper(wrapper))
}

function prove(program: Program, words: readonly Word[]): Proof | undefined {
  if (program.readOnly === undefined) return undefined
  const readOnly = typeof program.readOnly === "string" ? { options: program.readOnly } : program.readOnly
  const given = readArguments(words, program)
  if (!isKnown(given)) return undefined
  const { options, operands } = given
  const { maxOperands = Number.POSITIVE_INFINITY, operand, first, requires, neutral = [] } = readOnly
  const globs = operands.filter((word) => word.glob)
  // A glob may expand to any number of operands, so all operands must have the same role.
  if (operands.length > maxOperands || (globs.length > 0 && maxOperands !== Number.POSITIVE_INFINITY))
    return undefined
  if (options.some(({ name, value }) => value?.glob && !isNameFilter(name))) return undefined
  if (first && !(operands[0] && first.test(operands[0].text))) return undefined
  if (requires && !options.some(({ name }) => requires.includes(name))) return undefined
  if (operand && !operands.every((word) => operand.test(word.text))) return undefined
  const role = readOnly.operands ?? program.operands
  if (role === "text") return { files: [], git: false }

  const skipped = role === "pattern" && !givesPattern(given) ? 1 : 0
  if (operands.slice(0, first ? 1 : skipped).some((word) => word.glob)) return undefined
  const files = operands.slice(skipped).filter((word) => !neutral.includes(word.text))
  return readsDirectories(program, words)
    ? { files, recursive: wholeReading(program, words, options), git: false }
    : { files, git: false }
}

function proveSubcommand(program: Program, words: readonly Word[]): Proof | undefined {
  const given = readArguments(words, program)
  if (program.readOnly === undefined || !isKnown(given)) return undefined
  if (given.operands.length === 0 && given.options.some(({ name }) => name === "--version"))
    return { files: [], git: false }
  const found = findSubcommand(program, given.operands)
  const proof = found && prove(found.program, given.operands.slice(found.words))
  if (!proof) return undefined
  // `HEAD:name` and `:name` name files in a commit or in the index.
  const named = proof.files.filter((word) => word.text.includes(":"))
  const inside = named.map((word) => ({ ...word, text: word.text.slice(word.text.indexOf(":") + 1) }))
  return { ...proof, files: [...proof.files, ...inside] }
}

/** Properties of the programs in a command text. */
export interface KnownPrograms {
  /** Whether every program only reads or is git. All files that these programs read are judged before they run. */
  known: boolean
  /** Whether git may change the repository and all other programs only read. */
  git: boolean
}

/**
 * Checks whether the text consists of git and of commands that are proved to only read, such as
 * `git add -A && git commit -m …`. Excludes git subcommands whose arguments can run programs, commands that set options
 * or variables, and git in a repository whose hooks or configuration run programs. `directory` is the initial working
 * directory.
 */
export async function knownPrograms(text: string, directory: string): Promise<KnownPrograms> {
  const plan = await planCommand(text)
  const clear = plan.opaque === undefined && !plan.garbled && plan.commands.length > 0
  const known =
    clear &&
    plan.files.every(({ kind }) => kind !== "write") &&
    plan.commands.every((each) => isPlainGit(each) || proveReadOnly(each) !== undefined)
  if (known && startsOtherPrograms(plan, directory)) return { known: false, git: false }
  return { known, git: known && plan.commands.some(isPlainGit) }
}

/**
 * Returns true if git may start another program in one of its directories, such as a hook. That program needs the
 * bounds of an unknown program, but it runs in the same sandbox as git.
 */
function startsOtherPrograms(plan: ShellPlan, directory: string): boolean {
  const use = needsHardenedGit(plan) ? "reading" : "writing"
  if (use === "writing" && plan.commands.some(isPlainGit) && userHooks()) return true
  return plan.commands
    .filter(({ argv }) => argv[0]?.text === "git")
    .some(({ directories }) => {
      const known = directories?.every((each) => !each.startsWith("~"))
      return (
        !known ||
        !isPlainRepository(
          directories?.map((each) => resolve(directory, each)),
          use,
        )
      )
    })
}

const git = findProgram("git")

/**
 * Returns true for a git command that changes only the worktree and the repository, if its arguments do not run a
 * program.
 */
export function isPlainGit({ argv, opaque, assigns, wrapper }: PlannedCommand): boolean {
  const [program, subcommand, ...words] = argv
  if (program?.text !== "git" || !subcommand || subcommand.dynamic) return false
  if (opaque !== undefined || assigns || wrapper || !git?.subcommands?.[subcommand.text]?.repository)
    return false
  const fetches = subcommand.text === "fetch" || subcommand.text === "pull"
  return !words.some(({ text }) => runsProgram.test(text) || (fetches && text.includes("::")))
}

/** Matches options that name a program, including their abbreviations. */
const runsProgram = /^(?:-x|--e(?:x|xe|xec)?(?:=|$)|--upl|--rec|--ext)/

/**
 * Returns additional environment variables for a command. If the text contains git and is proved to only read, it may
 * have been allowed only because of that proof, so it runs in the hardened environment. Other texts get no variables,
 * so that hooks, transports and the user's configuration work.
 */
export async function commandEnvironment(text: string): Promise<Record<string, string>> {
  // Avoids parsing the text again if it does not contain `git`. Quotes may split the name.
  if (!text.includes("git") && !/["'\\]/.test(text)) return {}
  return needsHardenedGit(await planCommand(text)) ? hardenedGitEnvironment() : {}
}

/**
 * Returns true if git may print lines of files, not only names or counts. `words` are the words after `git`. Also takes
 * into account options that the subcommand may not support.
 */
export function showsContents(words: readonly Word[]): boolean {
  const rest = subcommand(words.map(({ text }) => text))
  const found =
    git &&
    findSubcommand(
      git,
      rest.map((text) => ({ text })),
    )
  const options = rest.slice(found?.words).filter((text) => text.startsWith("-"))
  switch (found?.program.shows) {
    case "always":
      return true
    case "unless summed up":
      return options.some(asksForPatch) || !options.some((text) => summaries.has(text.replace(/=.*/, "")))
    case "with a patch option":
      return options.some(asksForPatch)
    case "when verbose":
      return options.some((text) => /^-(?:[a-z]*v|-v)/.test(text))
    case "when interactive":
      return options.some((text) => /^-(?:[a-z]*[pi]|-p|-i)/.test(text))
    default:
      return false
  }
}

const summaries: ReadonlySet<string> = new Set(
  "-s -q --no-patch --quiet --stat --numstat --shortstat --dirstat --summary --compact-summary --name-only --name-status --raw".split(
    " ",
  ),
)

const patches =
  "--patch --unified --function-context --cc --binary --check --word-diff --color-words --remerge-diff --dd --diff-merges".split(
    " ",
  )

function asksForPatch(option: string): boolean {
  if (!option.startsWith("--")) return /^-[^SG]*[pUWLcu]/.test(option)
  const name = option.replace(/=.*/, "")
  return patches.some((known) => name.startsWith(known) || (name.length > 3 && known.startsWith(name)))
}

const valued = new Set([
  "-C",
  "-c",
  "--git-dir",
  "--work-tree",
  "--namespace",
  "--exec-path",
  "--super-prefix",
])

/** Returns the subcommand and the words after it. */
function subcommand(words: readonly string[]): readonly string[] {
  let start = 0
  for (let word = words[0]; word?.startsWith("-"); word = words[start]) start += valued.has(word) ? 2 : 1
  return words.slice(start)
}

/** The result of an expression for a file. Undefined if the result depends on more than the file's name. */
type Answer = boolean | undefined

/** An expression of `find` that can be tested on a name. `print` is called if the file may be printed. */
type Expression = (name: string, print: () => void) => Answer

/**
 * Returns a test for the names of the files that a `find` command may print, one on each line or separated by zero
 * bytes. Returns undefined if the command may print anything else.
 */
function printedNames(words: readonly Word[]): ((name: string) => boolean) | undefined {
  const texts = words.map(({ text }) => text)
  const start = texts.findIndex((text) => /^(?:-(?![HLPO])|\(|!)/.test(text))
  if (start === -1) return () => true
  if (texts.some((text) => otherOutput.has(text))) return undefined
  const parser = { texts: texts.slice(start), at: 0 }
  const expression = readAlternatives(parser)
  if (!expression || parser.at < parser.texts.length) return undefined
  const prints = parser.texts.some((text) => text === "-print" || text === "-print0")
  return (name) => {
    let printed = false
    const answer = expression(name, () => {
      printed = true
    })
    return prints ? printed : answer !== false
  }
}

const otherOutput: ReadonlySet<string> = new Set(["-printf", "-ls", "-quit", ","])

interface Parser {
  texts: readonly string[]
  at: number
}

function readAlternatives(parser: Parser): Expression | undefined {
  const parts: Expression[] = []
  do {
    const part = readSequence(parser)
    if (!part) return undefined
    parts.push(part)
  } while (takes(parser, ["-o", "-or"]))
  return (name, print) => {
    let answer: Answer = false
    for (const part of parts) {
      const found = part(name, print)
      if (found === true) return true
      if (found === undefined) answer = undefined
    }
    return answer
  }
}

function readSequence(parser: Parser): Expression | undefined {
  const parts: Expression[] = []
  while (parser.at < parser.texts.length && ![")", "-o", "-or"].includes(parser.texts[parser.at] ?? "")) {
    if (parts.length > 0) takes(parser, ["-a", "-and"])
    const part = readTest(parser)
    if (!part) return undefined
    parts.push(part)
  }
  if (parts.length === 0) return undefined
  return (name, print) => {
    let answer: Answer = true
    for (const part of parts) {
      const found = part(name, print)
      if (found === false) return false
      if (found === undefined) answer = undefined
    }
    return answer
  }
}

function readTest(parser: Parser): Expression | undefined {
  if (takes(parser, ["!", "-not"])) {
    const inner = readTest(parser)
    return (
      inner &&
      ((name, print) => {
        const found = inner(name, print)
        return found === undefined ? undefined : !found
      })
    )
  }
  if (takes(parser, ["("])) {
    const inner = readAlternatives(parser)
    return takes(parser, [")"]) ? inner : undefined
  }
  const test = parser.texts[parser.at] ?? ""
  if (!test.startsWith("-")) return undefined
  parser.at += 1
  if (test === "-print" || test === "-print0")
    return (_, print) => {
      print()
      return true
    }
  if (test === "-false") return () => false
  if (alwaysTrue.has(test)) return () => true
  if (withoutValue.has(test)) return () => undefined
  const value = parser.texts[parser.at] ?? ""
  parser.at += 1
  if (test === "-maxdepth" || test === "-mindepth") return () => true
  if ((test !== "-name" && test !== "-iname") || !/^[\w.*+@,=-]+$/.test(value)) return () => undefined
  return (name) => {
    if (test === "-name") return wildcardMatch(name, value)
    return isAscii(name) ? wildcardMatch(name.toLowerCase(), value.toLowerCase()) : undefined
  }
}

/** Returns true for printable ASCII. `find` and JavaScript may disagree on the case of other letters. */
function isAscii(name: string): boolean {
  return /^[ -~]*$/.test(name)
}

const alwaysTrue: ReadonlySet<string> = new Set([
  "-true",
  "-prune",
  "-depth",
  "-daystart",
  "-mount",
  "-xdev",
  "-follow",
])
const withoutValue: ReadonlySet<string> = new Set([
  "-empty",
  "-executable",
  "-nogroup",
  "-nouser",
  "-readable",
  "-writable",
])

function takes(parser: Parser, texts: readonly string[]): boolean {
  const found = texts.includes(parser.texts[parser.at] ?? "")
  if (found) parser.at += 1
  return found
}
