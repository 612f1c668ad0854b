import type { Program, WordStyle } from "./program.ts"
import type { Word } from "./words.ts"

/**
 * The effect of an option. The value of a `checked` option determines whether the option is harmless. `starts` and
 * `stops` mean that the option determines whether the program writes files. `uncertain` means that the word is known
 * only at run time and could be any option.
 */
export type OptionRole =
  | "harmless"
  | "writes"
  | "target"
  | "into"
  | "checked"
  | "starts"
  | "stops"
  | "inPlace"
  | "risk"
  | "script"
  | "valued"
  | "uncertain"

/** An option in the arguments of a command. */
export interface GivenOption {
  /** The name as written. */
  name: string
  /** All names of the option. */
  names: readonly string[]
  role: OptionRole
  /** The word that contains the option. */
  word: Word
  value?: Word
}

/** The arguments of a command, split into options and operands. */
export interface Arguments {
  options: GivenOption[]
  operands: Word[]
  /** The first word that cannot be read completely, for example an option that is not in the table. */
  unknown?: Word
  /** The option after which all arguments belong to a module, followed by these arguments. */
  stopped?: readonly Word[]
}

/**
 * Splits arguments into options and operands. Options that can run code or determine what is written are recognized
 * even if they are abbreviated, spelled differently or bundled with unknown letters. Other options are recognized only
 * by their exact names.
 */
export function readArguments(words: readonly Word[], program: Program): Arguments {
  const table = tableOf(program)
  const result: Arguments = { options: [], operands: [] }
  for (let index = 0; index < words.length; index++) {
    const word = words[index]
    if (!word) break
    if (word.text === "--" && !program.singleDash) {
      result.operands.push(...words.slice(index + 1))
      break
    }
    if (mayBeOption(word) && (word.dynamic || (word.glob && !namedOption.test(word.text)))) {
      result.unknown ??= word
      result.options.push({ name: word.text, names: [], role: "uncertain", word })
      continue
    }
    const bundle = index === 0 && program.leadingBundle === true && !word.text.startsWith("-")
    if (!bundle && (!word.text.startsWith("-") || word.text === "-")) {
      if (program.stopsAtOperand || program.subcommands) {
        result.operands.push(...words.slice(index))
        break
      }
      result.operands.push(word)
      continue
    }
    if (program.stopsAt?.test(word.text)) {
      result.unknown ??= word
      result.stopped = words.slice(index)
      break
    }
    const given = bundle ? { ...word, text: `-${word.text}` } : word
    // Each letter of a bundle takes at most one following word as its value.
    const following = words.slice(index + 1, index + 1 + given.text.length)
    const read = readOption({ word: given, following, table, style: program, bundle })
    result.options.push(...read.options)
    if (read.unknown) result.unknown ??= word
    index += read.taken ?? 0
  }
  return result
}

/** Returns true if the word may start with a dash at run time. */
function mayBeOption(word: Word): boolean {
  if (word.base !== undefined) return false
  return word.text.startsWith("-") || word.splits || /^[*?]/.test(word.span)
}

/** Matches an option whose name does not depend on the files that a glob in its value matches. */
const namedOption = /^--[a-z-]+=/

/** Whether an option takes no value, requires a value, or takes only an attached value. */
type ValueKind = "none" | "required" | "attached"

interface KnownOption {
  names: readonly string[]
  role: OptionRole
  value: ValueKind
}

interface OptionTable {
  byName: ReadonlyMap<string, KnownOption>
  /** Options that are also recognized if they are abbreviated or spelled differently. */
  risky: readonly KnownOption[]
  harmless: ReadonlySet<string>
}

const tables = new WeakMap<Program, OptionTable>()

function tableOf(program: Program): OptionTable {
  const known = tables.get(program)
  if (known) return known
  const table = makeTable(program)
  tables.set(program, table)
  return table
}

function makeTable(program: Program): OptionTable {
  const byName = new Map<string, KnownOption>()
  const risky: KnownOption[] = []
  const add = (text: string | undefined, role: OptionRole, value: ValueKind) => {
    for (const token of namesIn(text)) {
      const option: KnownOption = { names: token.split("|"), role, value }
      for (const name of option.names) byName.set(name, option)
      if (isRecognizedAnyhow(role)) risky.push(option)
    }
  }
  const { readOnly } = program
  for (const token of namesIn(typeof readOnly === "string" ? readOnly : readOnly?.options)) {
    const value = /[:=]$/.test(token) ? "required" : token.endsWith("?") ? "attached" : "none"
    const name = value === "none" ? token : token.slice(0, -1)
    byName.set(name, { names: [name], role: "harmless", value })
  }
  add(program.risks, "risk", "none")
  add(program.inPlace, "inPlace", "attached")
  add(program.writes, "writes", "required")
  add(program.script?.options, "script", "required")
  const addMissing = (text: string | undefined, role: OptionRole, value: ValueKind) => {
    const isMissing = (token: string) => !token.split("|").some((name) => byName.has(name))
    add(namesIn(text).filter(isMissing).join(" "), role, value)
  }
  add(program.targets, "target", "required")
  addMissing(program.into, "into", "required")
  for (const { options } of program.values ?? []) addMissing(options, "checked", "required")
  addMissing(program.rewrites, "starts", "none")
  addMissing(program.spreads?.with, "starts", "none")
  addMissing(program.spreads?.anywhere, "starts", "none")
  addMissing(program.spreads?.unless, "stops", "none")
  addMissing(program.dryRun, "stops", "none")
  for (const name of namesIn(program.valued)) {
    const option = byName.get(name)
    if (option && option.value !== "required") byName.set(name, { ...option, value: "required" })
    else if (!option) byName.set(name, { names: [name], role: "valued", value: "required" })
  }
  return { byName, risky, harmless: new Set(namesIn(program.harmless)) }
}

/** Splits a list of options from the program table. The names of one option stay joined by `|`. */
function namesIn(text: string | undefined): string[] {
  return text?.split(/\s+/).filter(Boolean) ?? []
}

function isRecognizedAnyhow(role: OptionRole): boolean {
  return !["harmless", "valued", "stops"].includes(role)
}

interface OptionWords {
  word: Word
  following: readonly Word[]
  table: OptionTable
  style: WordStyle
  /**
   * Whether the word is a bundle of options without a dash. The values of these options are the following words, in
   * order.
   */
  bundle: boolean
}

interface ReadOption {
  options: GivenOption[]
  unknown?: boolean
  /** Number of following words that are values of these options. */
  taken?: number
}

function readOption(given: OptionWords): ReadOption {
  const { word, table, style } = given
  if (style.numbers && /^-\d+$/.test(word.text))
    return { options: [{ name: "-number", names: ["-number"], role: "harmless", word }] }
  const whole = findWhole(word.text, table, style)
  if (whole) return readWhole(given, whole)
  return style.singleDash || word.text.startsWith("--") ? { options: [], unknown: true } : readBundle(given)
}

/**
 * Returns the option that a whole word names. Most options must be written with their exact name, but a risky option is
 * also recognized in other spellings.
 */
function findWhole(text: string, table: OptionTable, style: WordStyle): KnownOption | undefined {
  const written = text.split("=", 1)[0] ?? text
  const name = written.replaceAll("_", "-")
  if (table.harmless.has(name)) return undefined
  const long = style.singleDash || text.startsWith("--")
  const exact = long || text.length === 2 ? table.byName.get(written) : undefined
  if (exact) return exact
  const named = (each: string, from: string) =>
    table.risky.find(({ names }) => names.some((option) => isNamed(from, each, option)))
  const found = named(name, text)
  if (found) return found
  if (style.singleDash) {
    const single = text.replace(/^--/, "-")
    return named(single.split(/[=:]/, 1)[0] ?? single, single)
  }
  if (!text.startsWith("--") || style.whole) return undefined
  return table.risky.find(({ names }) =>
    names.some((option) => option.startsWith("--") && option.startsWith(name)),
  )
}

function isNamed(text: string, name: string, option: string): boolean {
  return option.endsWith("*") ? text.startsWith(option.slice(0, -1)) : name === option
}

function readWhole({ word, following: [next], style }: OptionWords, option: KnownOption): ReadOption {
  const { names, role, value } = option
  const equals = word.text.indexOf("=")
  const name = equals === -1 ? word.text : word.text.slice(0, equals)
  const given: GivenOption = { name, names, role, word }
  const star = names.find((each) => each.endsWith("*") && word.text.startsWith(each.slice(0, -1)))
  const attached =
    equals === -1 && star !== undefined ? word.text.slice(star.length - 1) : word.text.slice(equals + 1)
  if (equals !== -1 || (star !== undefined && attached !== "")) {
    if (role === "harmless" && value === "none") return { options: [], unknown: true }
    return { options: [{ ...given, value: { ...word, text: attached } }] }
  }
  if (value !== "required") return { options: [given] }
  if (!next || (next.splits && role === "harmless")) return { options: [given], unknown: role === "harmless" }
  // If options with one dash are whole words, the next word might not be the value of a risky option. The word is
  // therefore also read as an argument.
  const taken = role === "harmless" || !style.singleDash ? 1 : 0
  return { options: [{ ...given, value: next }], taken }
}

function readBundle({ word, following, table, bundle }: OptionWords): ReadOption {
  const options: GivenOption[] = []
  let unknown = false
  let taken = 0
  for (let at = 1; at < word.text.length; at++) {
    const name = `-${word.text[at]}`
    const option = table.byName.get(name)
    if (!option) {
      unknown = true
      continue
    }
    const { names, role, value } = option
    const given: GivenOption = { name, names, role, word }
    options.push(given)
    const rest = bundle ? "" : word.text.slice(at + 1)
    if (value === "required" && rest === "") {
      const next = following[taken]
      if (next && !(next.splits && role === "harmless")) {
        given.value = next
        taken += 1
      } else unknown = true
    } else if (rest !== "" && (value !== "none" || role === "risk")) {
      given.value = { ...word, text: rest }
      break
    }
  }
  return { options, unknown, taken }
}

/** Returns the first given option that is in a list from the program table. */
export function findOption(given: Arguments, list: string | undefined): GivenOption | undefined {
  return findOptions(given, list)[0]
}

/** Returns the given options that are in a list from the program table. */
export function findOptions({ options }: Arguments, list: string | undefined): GivenOption[] {
  const wanted = namesIn(list).flatMap((token) => token.split("|"))
  return options.filter(({ names }) => names.some((name) => wanted.includes(name)))
}
