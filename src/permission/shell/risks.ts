import { type Arguments, readArguments } from "./arguments.ts"
import { harmlessDevice } from "./operands.ts"
import type { ScriptTest } from "./plain-scripts.ts"
import type { Program } from "./program.ts"
import { findProgram, findSubcommand } from "./program-table.ts"
import type { Word } from "./words.ts"

/**
 * Returns one group of names for every option that runs a program or writes a named file, in any spelling. To allow the
 * command, a rule must contain a name of each group. Only `*` can allow a group without names.
 */
export function risksOf(name: string, words: readonly Word[]): string[][] {
  const program = findProgram(name)
  if (program?.builtin === "named")
    return words
      .filter(({ text }) => !text.startsWith("-"))
      .map(({ text }) => [text.split("=", 1)[0] ?? text])
  if (program && (program.risks ?? program.writes ?? program.inPlace) !== undefined)
    return risksIn(program, words)
  if (program?.operands === "text") return []
  const known = words.filter((word) => !word.dynamic && !word.glob)
  return [...risksIn(unlisted, known), ...(program ? risksIn(program, known) : [])]
}

/** Returns true if the pattern of a rule contains a name of the group, as a separate word. */
export function namesRisk(pattern: string, group: readonly string[]): boolean {
  const words = pattern.split(/[\s*?=]+/)
  return group.some((name) => words.includes(name) || (name.includes(" ") && pattern.includes(name)))
}

/** Common options that name a program to run or a file to write. Used for programs without an entry. */
const unlisted: Program = {
  risks:
    "--output --output-file --outfile --out-file --outputFile --outFile --log-file --logfile --exec --exec-batch --execute --eval --pager --editor --rsh --compress-program --use-compress-program --require --import --preload --loader --shell --script-shell --pre --pre-command --post-command",
  whole: true,
}

function risksIn(program: Program, words: readonly Word[]): string[][] {
  const given = readArguments(words, program)
  const risks = optionRisks(program, given)
  if (given.stopped) return risks
  const [first] = given.operands
  if (program.subcommands && first) {
    if (program.riskySubcommands?.split(" ").includes(first.text)) risks.push([first.text])
    const found = findSubcommand(program, given.operands)
    return [...risks, ...risksIn(insideOf(program, found?.program), given.operands.slice(found?.words ?? 1))]
  }
  const { script, operand, maxOperands = Number.POSITIVE_INFINITY } = program
  if (
    script &&
    first &&
    !given.options.some(({ role }) => role === "script") &&
    !isPlain(first, script.plain)
  )
    risks.push([first.text])
  for (const [index, word] of given.operands.entries())
    if ((operand && !operand.test(word.text)) || index >= maxOperands) risks.push([word.text])
  if (risks.length === 0 && takesInput(program, words, first)) risks.push(["-"])
  return risks
}

function optionRisks({ script }: Program, { options }: Arguments): string[][] {
  return options.flatMap(({ role, names, word, value }) => {
    if (role === "uncertain") return [[]]
    if (role === "script") return !value ? [[]] : script && isPlain(value, script.plain) ? [] : [[value.text]]
    if (role === "writes" && value && !value.dynamic && harmlessDevice.test(value.text)) return []
    return role === "risk" || role === "writes" || role === "inPlace" ? [[...names, word.text]] : []
  })
}

function isPlain(word: Word, plain: ScriptTest): boolean {
  return !word.dynamic && plain.test(word.text)
}

const insides = new WeakMap<Program, Program>()
const nothing: Program = {}

/**
 * Returns the entry of a subcommand merged with the entry of its program. Merges only long options, because short
 * options can have other meanings after the subcommand.
 */
function insideOf(program: Program, subcommand: Program = nothing): Program {
  const known = subcommand === nothing ? undefined : insides.get(subcommand)
  if (known) return known
  const longOnes = (options = "") =>
    options
      .split(" ")
      .map((names) =>
        names
          .split("|")
          .filter((name) => name.startsWith("--"))
          .join("|"),
      )
      .filter(Boolean)
      .join(" ")
  const joined: Program = {
    ...subcommand,
    operand: subcommand.operand ?? program.operand,
    risks: `${longOnes(program.risks)} ${subcommand.risks ?? ""}`,
    writes: `${longOnes(program.writes)} ${subcommand.writes ?? ""}`,
  }
  insides.set(subcommand === nothing ? program : subcommand, joined)
  return joined
}

const inputs: ReadonlySet<string> = new Set("- /dev/stdin /dev/fd/0 /proc/self/fd/0".split(" "))

/** Returns true if the program runs code from its standard input. Such code is as unknown as code after `-c`. */
function takesInput({ fromInput }: Program, words: readonly Word[], file: Word | undefined): boolean {
  if (fromInput === undefined) return false
  if (file) return inputs.has(file.text)
  const others = fromInput.split(" ")
  return !words.some(({ text }) => others.includes(text.split("=", 1)[0] ?? text))
}
