import { gnuName } from "./gnu-names.ts"
import { mayBeOption } from "./options.ts"
import { takesText } from "./read-only.ts"
import { riskyBuilders } from "./risky-builders.ts"
import { riskyGit } from "./risky-git.ts"
import { riskyInterpreters } from "./risky-interpreters.ts"
import type { RiskyProgram } from "./risky-program.ts"
import { riskyTools } from "./risky-tools.ts"
import type { Word } from "./words.ts"

/**
 * The groups of names of which a rule has to contain one each before it allows the command: for every option that runs
 * a program or writes a named file, in whatever spelling. A group without names can only be allowed by `*`.
 */
export function risksOf(name: string, words: readonly Word[]): string[][] {
  const program = programs.get(name) ?? programs.get(gnuName(name))
  if (program) return risksIn(program, words)
  return takesText(name)
    ? []
    : risksIn(
        unlisted,
        words.filter((word) => !word.dynamic && !word.glob),
      )
}

/** True if the rule's pattern names one of the group, as a word of its own. */
export function namesRisk(pattern: string, group: readonly string[]): boolean {
  const words = pattern.split(/[\s*?=]+/)
  return group.some((name) => words.includes(name) || (name.includes(" ") && pattern.includes(name)))
}

/** By these names many programs take a program to run or a file to write; a program without an entry may be one of them. */
const unlisted: RiskyProgram = {
  options:
    "--output --output-file --outfile --out-file --outputFile --outFile --log-file --logfile --exec --exec-batch --execute --eval --pager --editor --rsh --compress-program --use-compress-program --require --import --preload --loader --shell --script-shell --pre --pre-command --post-command",
  whole: true,
}

const programs: ReadonlyMap<string, RiskyProgram> = new Map(
  [...riskyTools, ...riskyInterpreters, ...riskyBuilders, ["git", riskyGit] as const].flatMap(
    ([names, program]) => names.split(" ").map((name) => [name, program] as const),
  ),
)

/** For the texts of the tables, which are few: each is read once. */
function readOnce<T>(read: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>()
  return (text) => {
    const found = known.get(text) ?? read(text)
    known.set(text, found)
    return found
  }
}

const groupsOf = readOnce((options): readonly (readonly string[])[] =>
  options
    .split(/\s+/)
    .filter(Boolean)
    .map((group) => group.split("|")),
)

const namesOf = readOnce((names): ReadonlySet<string> => new Set(names.split(/\s+/)))

/** Options before the subcommand have short forms of their own; only the long ones hold after it as well. */
const longOptionsOf = readOnce((options) =>
  groupsOf(options)
    .map((group) => group.filter((option) => option.startsWith("--")).join("|"))
    .filter(Boolean)
    .join(" "),
)

function risksIn(program: RiskyProgram, words: readonly Word[]): string[][] {
  const risks: string[][] = []
  const groups = groupsOf(program.options ?? "")
  const valued = namesOf(program.valued ?? "")
  const operands: Word[] = []

  for (let index = 0; index < words.length; index++) {
    const word = words[index]
    if (!word) break
    if (word.text === "--" && !program.singleDash) {
      operands.push(...words.slice(index + 1))
      break
    }
    if (mayBeOption(word) && (word.dynamic || word.glob)) {
      risks.push([])
      continue
    }
    const bundle = index === 0 && program.leadingBundle === true && !word.text.startsWith("-")
    if (!bundle && (!word.text.startsWith("-") || word.text === "-")) {
      const subcommand = program.subcommands && operands.length === 0
      operands.push(word)
      if (program.stopsAtOperand) break
      if (!subcommand) continue
      const rest = words.slice(index + 1)
      const own =
        program.subcommands && Object.hasOwn(program.subcommands, word.text)
          ? program.subcommands[word.text]
          : undefined
      if (program.riskySubcommands?.split(" ").includes(word.text)) risks.push([word.text])
      const options = `${longOptionsOf(program.options ?? "")} ${own?.options ?? ""}`
      const { operand } = program
      return [...risks, ...risksIn({ ...(operand ? { operand } : {}), ...own, options }, rest)]
    }
    const text = bundle ? `-${word.text}` : word.text
    if (program.stopsAfter !== undefined && text.startsWith(program.stopsAfter)) return risks
    // Without a dash each letter takes its value from the words behind, so that none ends the bundle.
    const found = riskyNames(text, groups, bundle ? namesOf("") : valued, program)
    if (found) risks.push([...found, word.text])
    if (program.script?.options?.some((option) => carriesScript(text, option))) {
      const value = scriptIn(text, words[index + 1])
      if (!value || value.dynamic || !program.script.plain.test(value.text))
        risks.push(value ? [value.text] : [])
    }
    if (takesNext(text, valued, program.singleDash === true)) index += 1
  }

  const given = words.some((word) =>
    program.script?.options?.some((option) => carriesScript(word.text, option)),
  )
  const script = given ? undefined : operands[0]
  if (program.script && script && (script.dynamic || !program.script.plain.test(script.text)))
    risks.push([script.text])
  const { operand } = program
  for (const [index, word] of operands.entries()) {
    if (operand && !operand.test(word.text)) risks.push([word.text])
    if (index >= (program.maxOperands ?? Number.POSITIVE_INFINITY)) risks.push([word.text])
  }
  if (risks.length === 0 && takesInput(program, words, operands[0])) risks.push(["-"])
  return risks
}

const inputs: ReadonlySet<string> = new Set("- /dev/stdin /dev/fd/0 /proc/self/fd/0".split(" "))

/** True where the program itself comes in as input: it is no more known than one behind `-c`. */
function takesInput({ fromInput }: RiskyProgram, words: readonly Word[], file: Word | undefined): boolean {
  if (fromInput === undefined) return false
  if (file) return inputs.has(file.text)
  const others = fromInput.split(" ")
  return !words.some(({ text }) => others.includes(text.split("=", 1)[0] ?? text))
}

/** The names of the risky option that a word is or may be: abbreviated, with its value attached, within a bundle. */
function riskyNames(
  text: string,
  groups: readonly (readonly string[])[],
  valued: ReadonlySet<string>,
  { singleDash, whole, harmless }: RiskyProgram,
): readonly string[] | undefined {
  const name = (text.split("=", 1)[0] ?? text).replaceAll("_", "-")
  if (harmless !== undefined && namesOf(harmless).has(name)) return undefined
  const exact = groups.find((group) => group.some((option) => isNamed(text, name, option)))
  if (singleDash) {
    const single = text.replace(/^--/, "-")
    return (
      exact ?? groups.find((group) => group.some((option) => isNamed(single, singleName(single), option)))
    )
  }
  if (exact) return exact
  if (text.startsWith("--")) {
    const abbreviates = (option: string) => option.startsWith("--") && option.startsWith(name)
    return whole ? undefined : groups.find((group) => group.some(abbreviates))
  }
  for (const letter of text.slice(1)) {
    const found = groups.find((group) => group.includes(`-${letter}`))
    if (found) return found
    if (valued.has(`-${letter}`)) return undefined
  }
  return undefined
}

/** An option that ends in a star has its value attached. */
function isNamed(text: string, name: string, option: string): boolean {
  return option.endsWith("*") ? text.startsWith(option.slice(0, -1)) : name === option
}

/** `-name=value`, or `-name:value` as some have it. */
function singleName(text: string): string {
  return text.split(/[=:]/, 1)[0] ?? text
}

/** True where the last letter of a bundle takes its value from the next word. */
function takesNext(text: string, valued: ReadonlySet<string>, singleDash: boolean): boolean {
  if (singleDash) return false
  if (text.startsWith("--")) return valued.has(text)
  const at = [...text.slice(1)].findIndex((letter) => valued.has(`-${letter}`))
  return at !== -1 && at === text.length - 2
}

function carriesScript(text: string, option: string): boolean {
  if (option.startsWith("--"))
    return text.length > 2 && text.startsWith("--") && option.startsWith(text.split("=", 1)[0] ?? text)
  return !text.startsWith("--") && text.startsWith("-") && text.includes(option.slice(1))
}

function scriptIn(text: string, next: Word | undefined): Word | undefined {
  const attached = text.startsWith("--")
    ? text.split("=").slice(1).join("=")
    : text.slice(text.indexOf("e") + 1)
  if (attached === "") return next
  return { text: attached, span: attached, dynamic: false, splits: false, glob: false, substitutions: [] }
}
