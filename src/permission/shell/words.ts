import type { ShellNode } from "./parse.ts"

/** One word of a command after quote removal. */
export interface Word {
  /** The text that the program receives. Parts that are known only at run time are left as written. */
  text: string
  /** A pattern for all possible values of the word. Each unknown part is a `*`. */
  span: string
  /** Whether a part of the word is known only at run time. A `$HOME`, `$PWD` or `~` at the start is known. */
  dynamic: boolean
  /**
   * Whether the word may expand to several words, to no word, or to an option, because one of its unknown parts is not
   * quoted.
   */
  splits: boolean
  /** Whether the word contains an unquoted `*`, `?` or `[`, which the shell replaces with file names. */
  glob: boolean
  /**
   * The directory that the word starts with: the home directory or the working directory. `tail` is the text after it.
   */
  base?: "home" | "directory"
  tail?: string
  /** Whether the word is an unknown file below a path that another command names in its arguments. */
  contained?: boolean
  /** Whether the unknown parts of the word are numbers without a sign. */
  numeric?: boolean
  /** Whether the word is a process substitution, which the program reads like a file. */
  stream?: boolean
  /** Whether the word is a name from the wrapper: a line of the input of `xargs`, or a file that `find` found. */
  fromInput?: boolean
  /**
   * Whether the word is an unquoted variable with a glob. This word stands for the files that the glob matches only if
   * their names contain no blanks or wildcards.
   */
  unquoted?: boolean
  /** Whether the word adds text to the file names that a glob matches, so that it may name files that do not exist. */
  derived?: boolean
  /** Substitutions whose output becomes part of the word. */
  substitutions: ShellNode[]
  /** Why the word could not be analyzed. */
  problem?: string
}

/** Known values of loop variables, keyed by name. */
export type Bindings = ReadonlyMap<string, Binding>

/** The value of a variable: literal text, or text with wildcards that stands for each matching file. */
export interface Binding {
  text: string
  /** Mask with the same length as `text`. See {@link Draft}. */
  mask: string
}

/**
 * Returns the word of a node. Never throws. A word that cannot be analyzed has a `problem`. A variable without a
 * binding is known only at run time.
 */
export function wordOf(node: ShellNode, text: string, bindings?: Bindings): Word {
  const word = finish(draftOf(node, text, bindings))
  const isInput = node.type === "process_substitution" && /^\s*<\(/.test(text.slice(node.start, node.end))
  return isInput ? { ...word, stream: true } : word
}

/**
 * Returns the value of a loop variable for one word in the loop, or undefined if the value is known only at run time.
 */
export function bindingOf(node: ShellNode, text: string): Binding | undefined {
  const draft = draftOf(node, text)
  const { dynamic, base, problem } = finish(draft)
  // In zsh, `=name` is the path of a program.
  if (dynamic || base !== undefined || problem !== undefined || draft.text.startsWith("=")) return undefined
  return { text: draft.text, mask: draft.mask.replaceAll(/[^*?[\]]/g, quoted) }
}

/** Creates a literal word. */
export function literalWord(text: string): Word {
  return {
    text,
    span: text.replaceAll("*", "?"),
    dynamic: false,
    splits: false,
    glob: false,
    substitutions: [],
  }
}

/** Creates a word that may have any value. */
export function unknownWord(text: string): Word {
  return { text, span: "*", dynamic: true, splits: true, glob: false, substitutions: [] }
}

function finish(draft: Draft): Word {
  const { text, mask } = draft
  const expands = /[*?[{~]/.test(mask)
  const glob = expands && (/[*?]/.test(mask) || hasBracketExpression(mask))
  const brace = expands && hasBraceExpansion(mask)
  const word: Word = {
    text,
    span: expands || draft.dynamic || text.includes("*") ? spanOf(text, mask) : text,
    dynamic: draft.dynamic || brace || (expands && /^~[^/]|[=:]~/.test(mask)),
    splits: draft.splits || brace,
    glob,
    substitutions: draft.substitutions,
  }
  if (expands && /^~(?:\/|$)/.test(mask)) {
    word.base = "home"
    word.tail = text.slice(1)
  } else if (draft.base !== undefined) {
    word.base = draft.base
    word.tail = text.slice(draft.baseLength ?? 0)
  }
  if (draft.problem !== undefined) word.problem = draft.problem
  if (word.dynamic && !brace && draft.unknowns === draft.numbers && draft.unknowns > 0) word.numeric = true
  if (glob && draft.bound !== undefined && draft.bound !== text) word.derived = true
  // The names of the files are known only for a word that consists of the variable.
  if (glob && draft.unquoted && word.derived) Object.assign(word, { dynamic: true, splits: true, span: "*" })
  else if (glob && draft.unquoted) word.unquoted = true
  return word
}

function hasBracketExpression(mask: string): boolean {
  const start = mask.indexOf("[")
  return start !== -1 && mask.indexOf("]", start + 2) !== -1
}

/**
 * Returns true for a `{` that is followed by `,` or `..` and by a `}`. Tests each part only once, so that the test is
 * fast even for long masks.
 */
function hasBraceExpansion(mask: string): boolean {
  return mask
    .split("}")
    .slice(0, -1)
    .some((part) => /,|\.\./.test(part.slice(part.indexOf("{") + 1 || part.length)))
}

/**
 * Returns the span of a word. A quoted `*` becomes `?`. After an unquoted bracket or brace, the span matches any text.
 */
function spanOf(text: string, mask: string): string {
  let span = ""
  const lastBracket = mask.lastIndexOf("]")
  for (let index = 0; index < text.length; index++) {
    const [character = "", role = ""] = [text[index], mask[index]]
    if (role === unknown) span = span.endsWith("*") ? span : `${span}*`
    else if ((role === "[" && index < lastBracket) || role === "{") return `${span}*`
    else if (role === quoted && character === "*") span += "?"
    else span += character
  }
  return span
}

/** Builds the draft of a word. Never throws. */
function draftOf(node: ShellNode, text: string, bindings?: Bindings): Draft {
  const draft: Draft = {
    text: "",
    mask: "",
    dynamic: false,
    splits: false,
    substitutions: [],
    bindings,
    unknowns: 0,
    numbers: 0,
  }
  read(node, text, draft, false)
  return draft
}

/**
 * A word under construction. `mask` has the same length as `text`. It contains the characters that the shell still
 * interprets, {@link quoted} in place of each literal character, and {@link unknown} in place of each unknown
 * character.
 */
export interface Draft {
  text: string
  mask: string
  dynamic: boolean
  splits: boolean
  base?: "home" | "directory"
  baseLength?: number
  substitutions: ShellNode[]
  problem?: string
  /** Whether the word contains an unquoted variable that stands for files. */
  unquoted?: boolean
  /** The value of an unquoted variable that stands for files. */
  bound?: string
  /** Number of unknown parts. */
  unknowns: number
  /** Number of unknown parts that are numbers without a sign. */
  numbers: number
  bindings?: Bindings
}

/** Marks a literal character in a mask. */
export const quoted = "\u0000"
/** Marks a character in a mask whose value is known only at run time. */
const unknown = "\u0001"

function read(node: ShellNode, text: string, draft: Draft, inQuotes: boolean): void {
  const source = text.slice(node.start, node.end)
  switch (node.type) {
    case "word":
    case "variable_name":
    case "test_operator":
      addUnquoted(draft, source)
      break
    case "raw_string":
      addQuoted(draft, source.slice(1, -1))
      break
    case "ansi_c_string":
      addAnsi(draft, source.slice(2, -1))
      break
    case "string":
      readString(node, text, draft)
      break
    case "command_name":
    case "concatenation":
      for (const child of node.children) read(child, text, draft, inQuotes)
      break
    case "simple_expansion":
    case "expansion":
      draft.problem ??= expansionProblem(node, text)
      addExpansion(draft, { node, source: source.trimStart(), next: text[node.end], inQuotes })
      // In zsh, the text in the brackets after a variable is arithmetic.
      if (/^\[(?![-\d,]*\])/.test(text.slice(node.end, node.end + 40)) && /^\s*\$\w/.test(source))
        draft.problem ??= "a subscript can run commands"
      break
    case "number":
      if (node.children.length === 0) addUnquoted(draft, source)
      else addUnknown(draft, node, source, inQuotes)
      break
    case "arithmetic_expansion":
      draft.problem ??= arithmeticProblem(source)
      if (source.includes("-")) addUnknown(draft, node, source.trimStart(), inQuotes)
      else addNumber(draft, node, source.trimStart())
      break
    default: {
      const problem = unknownProblem(node.type)
      if (problem !== undefined) draft.problem ??= problem

      addUnknown(draft, node, source.trimStart(), inQuotes)
    }
  }
}

/** Returns why a part whose value is known only at run time cannot be analyzed, or undefined if it can be. */
function unknownProblem(type: string): string | undefined {
  const known = [
    "command_substitution",
    "process_substitution",
    "brace_expression",
    "extglob_pattern",
    "translated_string",
  ]
  return known.includes(type) ? undefined : `${type.replaceAll("_", " ")} cannot be parsed`
}

function readString(node: ShellNode, text: string, draft: Draft): void {
  const end = node.end - 1
  let position = node.start + 1
  const literal = (to: number) => {
    const source = text.slice(position, to)
    // A shell may expand text that the grammar treats as plain.
    if (/`|\$[\w({[@*#?!$-]/.test(source.replaceAll(/\\./gs, "")))
      draft.problem ??= "part of a quoted string cannot be parsed"
    addQuoted(draft, unescapeQuoted(source))
  }
  for (const child of node.children) {
    if (!child.named || child.type === "string_content") continue
    // The grammar includes the blanks before an expansion in its node.
    const start = child.start + (/^\s*/.exec(text.slice(child.start, child.end))?.[0].length ?? 0)
    literal(start)
    read(child, text, draft, true)
    position = child.end
  }
  literal(end)
}

function addUnquoted(draft: Draft, source: string): void {
  // Most words contain nothing that a shell interprets except wildcards.
  if (!/[\\`"'|&;()<>\s$]/.test(source)) {
    draft.text += source
    draft.mask += source
    return
  }
  if (/[`"'|&;()<>\s]|\$./s.test(source.replaceAll(/\\./gs, ""))) draft.problem ??= "a word cannot be parsed"
  for (let index = 0; index < source.length; index++) {
    const character = source[index] ?? ""
    if (character !== "\\") {
      draft.text += character
      draft.mask += character
      continue
    }
    index += 1
    const escaped = source[index] ?? ""
    if (escaped !== "\n") addQuoted(draft, escaped)
  }
}

function addQuoted(draft: Draft, text: string): void {
  draft.text += text
  draft.mask += quoted.repeat(text.length)
}

function addAnsi(draft: Draft, source: string): void {
  const { text, problem } = decodeAnsi(source)
  if (problem !== undefined) draft.problem ??= problem
  addQuoted(draft, text)
}

function addUnknown(draft: Draft, node: ShellNode, source: string, inQuotes: boolean): void {
  collect(node, draft.substitutions)
  draft.unknowns += 1
  draft.text += source
  draft.mask += unknown.repeat(source.length)
  draft.dynamic = true
  if (!inQuotes) draft.splits = true
}

function addNumber(draft: Draft, node: ShellNode, source: string): void {
  draft.numbers += 1
  addUnknown(draft, node, source, true)
}

function addExpansion(
  draft: Draft,
  { node, source, next, inQuotes }: { node: ShellNode; source: string; next?: string; inQuotes: boolean },
): void {
  const known = /^\$\{?(HOME|PWD)\}?$/.exec(source)?.[1]
  if (known !== undefined && draft.text === "" && draft.base === undefined) {
    draft.base = known === "HOME" ? "home" : "directory"
    draft.baseLength = source.length
    addQuoted(draft, source)
    return
  }
  if (/^\$(?:[?#]|\{[?#]\})$/.test(source)) {
    addNumber(draft, node, source)
    return
  }
  const bound = draft.bindings?.get(/^\$\{?(\w+)\}?$/.exec(source)?.[1] ?? "")
  // In zsh, `$name[1]` and `$name:h` are other values.
  const isWhole = next !== "[" && next !== ":"
  if (bound && isWhole && (inQuotes || isOneWord(bound))) {
    draft.text += bound.text
    draft.mask += bound.mask
    draft.bound ??= bound.text
    if (!inQuotes) draft.unquoted = true
    return
  }
  addUnknown(draft, node, source, inQuotes)
  if (/^\$\{?[@*]/.test(source)) draft.splits = true
}

/**
 * Returns true if the value is not empty and, apart from its wildcards, contains nothing that a shell splits or expands
 * in an unquoted variable.
 */
function isOneWord({ text, mask }: Binding): boolean {
  return (
    text !== "" && [...text].every((character, at) => mask[at] !== quoted || /[\w./:@%+,=-]/.test(character))
  )
}

function collect(node: ShellNode, into: ShellNode[]): void {
  if (node.type === "command_substitution" || node.type === "process_substitution") into.push(node)
  else for (const child of node.children) collect(child, into)
}

function unescapeQuoted(text: string): string {
  return text.replaceAll(/\\([$`"\\\n])/g, (_, next: string) => (next === "\n" ? "" : next))
}

/** Decodes a string in `$'…'`. If an escape is not recognized, sets `problem` and leaves the escape as written. */
function decodeAnsi(text: string): { text: string; problem?: string } {
  let problem: string | undefined
  const escapes = /\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))/gs
  const decoded = text.replaceAll(escapes, (whole, hex, short, long, octal, letter: string | undefined) => {
    if (letter !== undefined && Object.hasOwn(ansiEscapes, letter)) return ansiEscapes[letter] ?? whole
    const code =
      octal === undefined ? Number.parseInt(hex ?? short ?? long ?? "", 16) : Number.parseInt(octal, 8)
    // A byte above 127 is only part of a character, and a zero byte ends the string. Neither is supported.
    const bytes = hex !== undefined || octal !== undefined
    if (!(code > 0 && code <= 0x10ffff) || (bytes && code > 127)) {
      problem ??= `the escape ${whole} cannot be parsed`
      return whole
    }
    return String.fromCodePoint(code)
  })
  return problem === undefined ? { text: decoded } : { text: decoded, problem }
}

const ansiEscapes: Readonly<Record<string, string>> = {
  a: "\u0007",
  b: "\b",
  e: "\u001b",
  E: "\u001b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
  "'": "'",
  '"': '"',
  "?": "?",
}

/**
 * Returns why an expansion may do more than look up a value. Also checks nested expansions in the operand of the
 * expansion, and text that the grammar, but not a shell, treats as plain. `text` is the string to which the positions
 * of the node refer.
 */
function expansionProblem(node: ShellNode, text: string): string | undefined {
  const source = text.slice(node.start, node.end).trimStart()
  if (!harmlessExpansion.test(source)) return `${source.slice(0, 40)} can do more than look up a value`
  const parts = partsOf(node)
  // According to the grammar, the text outside these parts runs nothing, so none of it may look like an expansion.
  let position = node.end - source.length + 1
  let plain = ""
  for (const part of parts) {
    plain += `${text.slice(position, part.start)} `
    position = part.end
  }
  plain += text.slice(position, node.end)
  if (/`|\$[\w({[@*#?!$'"-]|[<>=]\(/.test(plain.replaceAll(/\\./gs, ""))) {
    return `part of ${source.slice(0, 40)} cannot be parsed`
  }
  for (const part of parts) {
    const problem = partProblem(part, text)
    if (problem !== undefined) return problem
  }
  return undefined
}

/**
 * Returns why an arithmetic expression may run commands. A shell evaluates the names in the expression and the values
 * of parameters such as `$1`, so only numbers are allowed.
 */
function arithmeticProblem(source: string): string | undefined {
  return /[^\s\d+*/%()$[\]-]|\$(?![([])/.test(source) ? "its arithmetic can run commands" : undefined
}

/** Matches expansions that only look up a value. Other forms can assign, evaluate or run something. */
const harmlessExpansion = /^\$(?:\w+|[@*#?$!-]|\{#?\w+\}|\{\w+(?::?[-+]|%%?|##?|\/\/?).*\})$/s

const partTypes = new Set([
  "simple_expansion",
  "expansion",
  "arithmetic_expansion",
  "command_substitution",
  "process_substitution",
])

/** Returns the outermost expansions and substitutions inside a node. */
function partsOf(node: ShellNode): ShellNode[] {
  return node.children.flatMap((child) => (partTypes.has(child.type) ? [child] : partsOf(child)))
}

/** Returns why a nested part may do more than look up a value. Commands in substitutions are analyzed separately. */
function partProblem(part: ShellNode, text: string): string | undefined {
  if (part.type === "arithmetic_expansion") return arithmeticProblem(text.slice(part.start, part.end))
  return part.type.endsWith("substitution") ? undefined : expansionProblem(part, text)
}

/** Matches devices and open files whose use needs no permission. */
export const harmlessDevice = /^\/dev\/(?:null|zero|stdin|stdout|stderr|fd\/\d+)$/

/** Matches the standard input or another open file as the name of a script. */
export const inputName = /^-$|(?:^|\/)(?:stdin|fd\/\d+)$/

/** Returns the words joined by single blanks. */
export function joinWords(words: readonly Word[]): string {
  return words.map((word) => word.text).join(" ")
}
