import { resolve } from "node:path"
import { wildcardMatch } from "../../util/wildcard.ts"
import { protectionOf } from "../protected-files.ts"
import { type GivenOption, readArguments } from "./arguments.ts"
import { hardenedGitEnvironment, isPlainRepository, userHooks } from "./git-repository.ts"
import {
  givesPattern,
  isKnown,
  isNameFilter,
  readAction,
  readsDirectories,
  type WholeReading,
  wholeReading,
} from "./operands.ts"
import { planCommand } from "./plan-command.ts"
import type { Program } from "./program.ts"
import { findProgram, findSubcommand, gnuName } from "./program-table.ts"
import type { PlannedCommand, ShellPlan } from "./shell-plan.ts"
import { literalWord, type Word } from "./words.ts"
import { findEnd, wrapperOptions } from "./wrapped-commands.ts"

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
  /**
   * Words that start with a wildcard. The proof is valid only if these words match files, and no matching name is an
   * option.
   */
  wildcards?: Word[]
  /** Whether the command is git and may print the contents of any tracked file. */
  showsTracked?: boolean
}

/**
 * Proves that a command writes nothing, starts nothing and does not use the network. Returns undefined if there is no
 * proof, for example because an option is unknown or a word is known only at run time. The files that the command reads
 * are judged as `read`. A word that starts with a wildcard may expand to an option, so it is accepted only if
 * `acceptsWildcards` is true.
 */
export function proveReadOnly(command: PlannedCommand, acceptsWildcards = false): Proof | undefined {
  const listed = command.wrapper && listedFiles(command.wrapper)
  const [program, ...given] = command.argv.map((word) => standIn(word, command, listed !== undefined))
  if (!program || command.opaque !== undefined || command.assignments || command.unknownInput)
    return undefined
  if (command.wrapper && !isPlainWrapper(command.wrapper) && !listed) return undefined
  const name = program.text
  const entry = gnuName(name) === name ? findProgram(name) : undefined
  const globs = entry?.prints ? [] : given.filter((word) => word.glob)
  const wildcards = globs.filter((word) => !startsPlain(word))
  const words = (entry?.wraps === "find" ? withoutCommands(given) : given).map((word) =>
    wildcards.includes(word) ? { ...word, span: `./${word.span}` } : word,
  )
  if (program.glob || [program, ...words].some((word) => word.dynamic)) return undefined
  if (!globs.every(isPlainGlob) || (wildcards.length > 0 && (!acceptsWildcards || entry?.subcommands)))
    return undefined
  // Git would also need its hardened environment, which depends on the directory of each file.
  const proof = entry && !(listed && name === "git") ? proveProgram(entry, words) : undefined
  if (!proof && entry?.prints) return { files: [], git: false }
  if (listed) return proof && readListed(proof, listed, entry)
  if (proof && wildcards.length > 0) return { ...proof, wildcards }
  return proof && name === "git" ? { ...proof, git: true, showsTracked: showsContents(words) } : proof
}

function proveProgram(program: Program, words: readonly Word[]): Proof | undefined {
  const [first, ...more] = words
  const isVersion = first && more.length === 0 && program.version?.split(" ").includes(first.text)
  if (isVersion) return { files: [], git: false }
  return program.subcommands ? proveSubcommand(program, words) : prove(program, words)
}

/** Files that `find` or `xargs` passes to another command. */
interface ListedFiles {
  /** The files, and directories that contain further files. */
  words: Word[]
  reading: WholeReading
}

/**
 * Returns the files that a wrapper passes to its inner command: the files that `find` finds, or that the standard input
 * of `xargs` names. Returns undefined if they are unknown.
 */
function listedFiles(wrapper: PlannedCommand): ListedFiles | undefined {
  if (wrapper.wrapper) return undefined
  const called = wrapper.argv[0]?.text ?? ""
  if (findProgram(called)?.wraps === "find") return foundFiles(wrapper)
  if (gnuName(called) !== "xargs") return undefined
  const options = wrapperOptions(wrapper.argv)
  const delimiters = options.filter(({ name }) => name === "-d" || name === "--delimiter")
  // With any other delimiter, `xargs` would split the output into names other than those of the listed files.
  if (!delimiters.every(({ value }) => value?.text === "\\n" || value?.text === "\n")) return undefined
  let source = wrapper.input
  while (source?.input && selectsLines(source)) source = source.input
  const found = source && !source.input && foundFiles(source)
  if (!found) return undefined
  const separated =
    source?.argv.some(({ text }) => text === "-print0") &&
    options.some(({ name }) => name === "-0" || name === "--null")
  if (separated) return found
  if (found.words.some(({ text, base }) => base !== undefined || !/^[\w./@%+,=*?-]+$/.test(text)))
    return undefined
  return {
    words: found.words.map((word) => ({ ...word, unquoted: true })),
    reading: { ...found.reading, plainNames: true },
  }
}

/** Returns the files whose names a command prints or passes on, or undefined if they are unknown. */
function foundFiles(command: PlannedCommand): ListedFiles | undefined {
  const [name, ...words] = command.argv
  const entry = findProgram(name?.text ?? "")
  const names = entry?.wraps === "find" ? namesFound(entry, withoutCommands(words)) : undefined
  if (!names && !(entry?.lists && listsFiles(entry, words))) return undefined
  const proof = proveReadOnly(command)
  if (!proof) return undefined
  const reading = names ? { hidden: true, selects: names } : proof.recursive
  return { words: proof.files, reading: { ...reading, hidden: reading?.hidden ?? true, followsLinks: true } }
}

/**
 * Substitutes `-print` for each `-exec` command of `find`, because the plan lists these commands separately. Keeps
 * commands to which `find` passes no files.
 */
function withoutCommands(words: readonly Word[]): Word[] {
  const kept: Word[] = []
  for (let index = 0; index < words.length; index++) {
    const word = words[index]
    if (!word) break
    const end = word.text === "-exec" ? findEnd(words, index + 1) : index
    const passesFiles = words.slice(index, end).some(({ text }) => text === "{}")
    kept.push(passesFiles ? literalWord("-print") : word)
    if (passesFiles) index = end
  }
  return kept
}

/**
 * Returns a test that accepts the name of each file that a `find` command may print. The test may accept other names,
 * too. Returns undefined if the command may print anything but names.
 */
function namesFound(find: Program, words: readonly Word[]): ((name: string) => boolean) | undefined {
  if (words.some(({ text }) => otherOutput.has(text))) return undefined
  const { options, operands } = readArguments(words, find)
  const byWord = new Map(options.map((option) => [option.word, option]))
  // The operands before the expression are the directories to search.
  const start = words.findIndex((word) => byWord.has(word) || brackets.has(word.text))
  const tokens: Token[] = words
    .slice(start === -1 ? words.length : start)
    .flatMap((word) => byWord.get(word) ?? (operands.includes(word) ? { name: word.text } : []))
  const alternatives = readAlternatives(tokens)
  const printing = alternatives.filter(({ prints }) => prints)
  const counted = printing.length > 0 ? printing : alternatives
  return (name) => counted.some(({ accepts }) => accepts(name))
}

const otherOutput: ReadonlySet<string> = new Set(["-printf", "-ls", "-quit", ","])
const brackets: ReadonlySet<string> = new Set(["(", "!"])

type Token = Pick<GivenOption, "name" | "value">

/** Part of a `find` expression. `prints` means that the part may print the file. */
interface FindPart {
  accepts(name: string): boolean
  prints: boolean
}

/** Parses the alternatives of an expression, up to a closing bracket, and removes them from the tokens. */
function readAlternatives(tokens: Token[]): FindPart[] {
  const alternatives: FindPart[] = []
  for (let more = true; more; ) {
    const parts: FindPart[] = []
    for (let token = tokens.shift(); ; token = tokens.shift()) {
      more = token?.name === "-o" || token?.name === "-or"
      if (!token || token.name === ")" || more) break
      parts.push(readPart(token, tokens))
    }
    alternatives.push({
      accepts: (name) => parts.every((part) => part.accepts(name)),
      prints: parts.some(({ prints }) => prints),
    })
  }
  return alternatives
}

function readPart(token: Token, tokens: Token[]): FindPart {
  if (token.name === "(") {
    const alternatives = readAlternatives(tokens)
    return {
      accepts: (name) => alternatives.some((part) => part.accepts(name)),
      prints: alternatives.some(({ prints }) => prints),
    }
  }
  if (token.name === "!" || token.name === "-not") {
    const negated = tokens.shift()
    const matches = negated && nameTest(negated)
    if (matches) return { accepts: (name) => !isAscii(name) || !matches(name), prints: false }
    return { accepts: () => true, prints: negated ? readPart(negated, tokens).prints : false }
  }
  return { accepts: nameTest(token) ?? (() => true), prints: /^-print0?$/.test(token.name) }
}

/**
 * Returns a function that performs the test `-name` or `-iname`. Returns undefined for other tests and for unusual
 * patterns.
 */
function nameTest({ name: test, value }: Token): ((name: string) => boolean) | undefined {
  if (!value || !/^[\w.*+@,=-]+$/.test(value.text)) return undefined
  if (test === "-name") return (name) => wildcardMatch(name, value.text)
  const pattern = value.text.toLowerCase()
  return test === "-iname"
    ? (name) => !isAscii(name) || wildcardMatch(name.toLowerCase(), pattern)
    : undefined
}

/** Returns true for printable ASCII. `find` and JavaScript may disagree on the case of other letters. */
function isAscii(name: string): boolean {
  return /^[ -~]*$/.test(name)
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

/** Returns the proof for a command that reads the files in a list. */
function readListed(
  proof: Proof,
  { words, reading }: ListedFiles,
  entry: Program | undefined,
): Proof | undefined {
  if (!proof.files.every((word) => word.fromInput)) return undefined
  if (proof.files.length === 0 || entry?.operands === "names")
    return { files: [], git: false, fromInput: true }
  if (!proof.recursive) return { files: words, recursive: reading, git: false, fromInput: true }
  // For an empty list, `xargs` runs the command without files. The command then reads its working directory.
  return {
    files: [...words, literalWord(".")],
    recursive: { ...reading, hidden: true, selects: undefined },
    git: false,
    fromInput: true,
  }
}

/**
 * Returns true for text that contains git and only commands that are proved to only read. The proof that git only reads
 * is valid only in this kind of text.
 */
function needsHardenedGit(plan: ShellPlan): boolean {
  const proofs = plan.commands.filter(({ transparent }) => !transparent).map((each) => proveReadOnly(each))
  return (
    plan.opaque === undefined && !plan.garbled && proofs.every(Boolean) && proofs.some((proof) => proof?.git)
  )
}

/** Returns true for a glob that cannot expand to a hidden file and does not name a secret. */
function isPlainGlob(word: Word): boolean {
  const isValue = /^--[a-z-]+=/.test(word.text)
  const hidden = word.text.split("/").some((segment) => segment.startsWith(".") && /[*?[]/.test(segment))
  return (
    isValue ||
    (!hidden && !protectionOf(word.text, "read") && (startsPlain(word) || /^[*?[]/.test(word.text)))
  )
}

/** Returns true for a glob that cannot expand to an option: `src/*.ts`, but not `*.ts`. */
function startsPlain({ text, base }: Word): boolean {
  return base !== undefined || /^(?:[\w./~]|--[a-z-]+=)/.test(text)
}

/**
 * Returns true for a transparent wrapper that adds no words to its inner command, if the same is true of its own
 * wrappers.
 */
function isPlainWrapper({ argv: [program], transparent, wrapper }: PlannedCommand): boolean {
  const wraps = findProgram(program?.text ?? "")?.wraps
  const isPlain = transparent === true && typeof wraps === "object" && !wraps.appends
  return isPlain && (!wrapper || isPlainWrapper(wrapper))
}

function prove(called: Program, words: readonly Word[]): Proof | undefined {
  const { entry: program, given } = readAction(called, words)
  if (program.readOnly === undefined || !isKnown(given)) return undefined
  const readOnly = typeof program.readOnly === "string" ? { options: program.readOnly } : program.readOnly
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

/** The initial working directory and the environment of a command. */
interface CommandPlace {
  cwd: string
  env: Readonly<Record<string, string | undefined>>
}

/**
 * Checks whether the text consists of git and of commands that are proved to only read, such as
 * `git add -A && git commit -m …`. Excludes git subcommands whose arguments can run programs, git with options or
 * assignments before its subcommand, and git in a repository whose hooks or configuration run programs.
 */
export async function knownPrograms(text: string, place: CommandPlace): Promise<KnownPrograms> {
  const plan = await planCommand(text)
  const clear = plan.opaque === undefined && !plan.garbled && plan.commands.length > 0
  const known =
    clear &&
    plan.files.every(({ kind }) => kind !== "write") &&
    plan.commands.every((each) => isPlainGit(each) || proveReadOnly(each) !== undefined)
  if (known && startsOtherPrograms(plan, place)) return { known: false, git: false }
  return { known, git: known && plan.commands.some(isPlainGit) }
}

/**
 * Returns true if git may start another program in one of its directories, such as a hook. That program needs the
 * bounds of an unknown program, but it runs in the same sandbox as git.
 */
function startsOtherPrograms(plan: ShellPlan, { cwd, env }: CommandPlace): boolean {
  const use = needsHardenedGit(plan) ? "reading" : "writing"
  if (use === "writing" && plan.commands.some(isPlainGit) && userHooks(env)) return true
  return plan.commands
    .filter(({ argv }) => argv[0]?.text === "git")
    .some(({ directories }) => {
      const known = directories?.every((each) => !each.startsWith("~"))
      return (
        !known ||
        !isPlainRepository(
          directories?.map((each) => resolve(cwd, each)),
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
 * Returns additional environment variables for a command. A text that contains git and is proved to only read may have
 * been allowed only because of that proof, so it runs in the hardened environment. Other texts get no variables, so
 * that hooks, transports and the user's configuration work.
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
  const { operands } = readArguments(words, git ?? {})
  const found = git && findSubcommand(git, operands)
  const options = operands
    .slice(found?.words)
    .map(({ text }) => text)
    .filter((text) => text.startsWith("-"))
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
