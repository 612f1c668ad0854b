import { basename } from "node:path"
import { type Arguments, findOptions, readArguments } from "./arguments.ts"
import type { CodeInput, Program, ScriptTest } from "./program.ts"
import { findProgram, findSubcommand, findVersioned } from "./program-table.ts"
import { harmlessDevice, inputName, type Word } from "./words.ts"

/**
 * Returns one group of names for every risk of a command: an option, operand, script, subcommand or module that can run
 * a program or code, or write a file that the command names, and `-` for input that runs as code. To allow the command,
 * a rule must contain a name from each group. Only `*` can allow a group without names.
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
  const versioned = program ? undefined : findVersioned(name)
  return [
    ...risksIn(unlisted, known),
    ...(program ? risksIn(program, known) : []),
    ...(versioned ? risksIn(versioned, words) : []),
  ]
}

/**
 * Returns the values, attached or as the next word, of the options in the program's `risks` and `inPlace`. Each value
 * may be a command.
 */
export function riskValues(name: string, words: readonly Word[]): string[] {
  const program = findProgram(name)
  return program ? valuesIn(program, words) : []
}

function valuesIn(program: Program, words: readonly Word[]): string[] {
  const given = readArguments(words, program)
  const values = given.options.flatMap(({ role, value, word }) => {
    if (role !== "risk" && role !== "inPlace") return []
    const at = words.indexOf(word)
    const found = value ?? (at === -1 ? undefined : words[at + 1])
    return found ? [found.text] : []
  })
  const found = program.subcommands && findSubcommand(program, given.operands)
  if (!found) return values
  return [...values, ...valuesIn(insideOf(program, found.program), given.operands.slice(found.words))]
}

/** Returns true if a rule's pattern contains at least one name from each group as a separate word. */
export function namesRisks(pattern: string, groups: readonly (readonly string[])[]): boolean {
  const words = new Set(pattern.split(/[\s*?=]+/))
  return groups.every((group) =>
    group.some((name) => words.has(name) || (name.includes(" ") && pattern.includes(name))),
  )
}

/** Common options that name a program to run or a file to write. Used for programs that are not in the table. */
const unlisted: Program = {
  risks:
    "--output --output-file --outfile --out-file --outputFile --outFile --log-file --logfile --exec --exec-batch --execute --eval --pager --editor --rsh --compress-program --use-compress-program --require --import --preload --loader --shell --script-shell --pre --pre-command --post-command",
  whole: true,
}

function risksIn(program: Program, words: readonly Word[]): string[][] {
  const given = readArguments(words, program)
  const risks = [...optionRisks(program, given), ...valueRisks(program, given)]
  if (given.stopped) return [...risks, ...moduleRisks(program, given.stopped)]
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
  if (risks.length === 0 && takesInput(program, words, given)) risks.push(["-"])
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

function valueRisks({ values = [] }: Program, given: Arguments): string[][] {
  return values.flatMap(({ options, harmless }) =>
    findOptions(given, options).flatMap(({ value }) =>
      !harmless || (value && isPlain(value, harmless)) ? [] : [value ? [value.text] : []],
    ),
  )
}

function isPlain(word: Word, plain: ScriptTest): boolean {
  return !word.dynamic && plain.test(word.text)
}

const insides = new WeakMap<Program, Program>()
const nothing: Program = {}

/**
 * Returns a subcommand's entry, merged with its program's entry. Merges only long options, because short options can
 * have other meanings after the subcommand.
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

/** Returns the modules that run code from their arguments or their input. */
function moduleRisks({ modules = "", stopsAt }: Program, words: readonly Word[]): string[][] {
  const known = modules.split(" ")
  return words.flatMap(({ text }, index) => {
    const name = stopsAt?.test(text) ? text.replace(stopsAt, "") || words[index + 1]?.text : undefined
    return name !== undefined && known.includes(name) ? [[name]] : []
  })
}

/** Returns true if the program runs code from its standard input. */
function takesInput({ input, version }: Program, words: readonly Word[], { operands }: Arguments): boolean {
  if (!input) return false
  const [first] = operands
  if (hasOption(first ? words.slice(0, words.indexOf(first) + 1) : words, input.with)) return true
  if (first) return inputName.test(scriptIn(input, operands)?.text ?? "")
  return !input.always && !hasOption(words, input.unless) && !hasOption(words, version)
}

/** Returns the operand that names the script. */
function scriptIn({ after = "" }: CodeInput, operands: readonly Word[]): Word | undefined {
  const [first] = operands
  if (!first || !after.split(" ").includes(first.text)) return first
  return operands.slice(1).find(({ text }) => text === "-" || !text.startsWith("-"))
}

function hasOption(words: readonly Word[], options = ""): boolean {
  const names = options.split(" ").filter(Boolean)
  return words.some(({ text }) =>
    names.some((name) =>
      /^-\w$/.test(name) ? new RegExp(`^-\\w*${name[1]}`).test(text) : text.split("=", 1)[0] === name,
    ),
  )
}

/**
 * How a command uses its standard input as code.
 *
 * - `runs`: the command runs the input.
 * - `fed`: the command runs the input if the command text connects an input to the command.
 * - `script`: the command runs a file, and the input is data.
 * - `unknown`: the command is not in the table, so the input may be code.
 */
export type InputUse = "runs" | "fed" | "script" | "unknown"

/** Returns how a command uses its standard input as code, or undefined if the command runs no code. */
export function inputUse(name: string, words: readonly Word[]): InputUse | undefined {
  const program = findVersioned(name)
  if (!program) return "unknown"
  if (program.wraps === "shell") return "script"
  if (program.wraps === "unknown" || program.builtin === "evaluates") return "runs"
  return inputUseIn(program, words)
}

/** Maximum number of wrapper words before the inner command. */
export const maxWrapperWords = 24

/** Returns how a command that starts at one of the words uses its standard input. */
export function innerInputUse(words: readonly Word[]): InputUse {
  const runs = words.some(({ text }, index) => {
    const program = findVersioned(basename(text))
    if (!program || program.builtin || index >= maxWrapperWords) return false
    const rest = words.slice(index + 1)
    if (program.wraps === "shell") return rest.every((word) => /^-[a-z]*$/.test(word.text))
    return (program.input || program.wraps === "unknown") && inputUse(basename(text), rest) === "runs"
  })
  return runs ? "runs" : "unknown"
}

function inputUseIn(program: Program, words: readonly Word[]): InputUse | undefined {
  const given = readArguments(words, program)
  const { options, operands, stopped } = given
  const found = program.subcommands && findSubcommand(program, operands)
  if (found) return inputUseIn(found.program, operands.slice(found.words))
  if (stopped) return moduleRisks(program, stopped).length > 0 ? "runs" : "script"
  const code = options.filter(({ role }) => role === "risk" || role === "script")
  const files = [...words, ...code.flatMap(({ value }) => value ?? [])]
  if (code.length > 0 && files.some(({ text }) => inputName.test(text))) return "runs"
  if (!program.input) return code.length > 0 ? "script" : undefined
  const isUnclear =
    options.some(({ role }) => role === "uncertain") || scriptIn(program.input, operands)?.dynamic
  if (isUnclear || takesInput(program, words, given)) return "runs"
  return program.input.always && !hasOption(words, program.input.unless) ? "fed" : "script"
}
