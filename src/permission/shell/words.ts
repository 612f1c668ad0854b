import { arithmeticFault, expansionFault } from "./expansions.ts"
import type { ShellNode } from "./parse.ts"

/** One word of a command after the shell removed its quotes. */
export interface Word {
  /** What the program gets; parts known only when the command runs stand as they are written. */
  text: string
  /** A pattern over all that the word may become: `*` for every unknown part. */
  span: string
  /** Some part is known only when the command runs. `$HOME`, `$PWD` and `~` at the start are known. */
  dynamic: boolean
  /** It may become several words, or none, or an option: an unknown part stands outside quotes. */
  splits: boolean
  /** File names are put in for unquoted `*`, `?` or `[`. */
  glob: boolean
  /** It starts with the home directory or the current one, and `tail` is the rest. */
  base?: "home" | "directory"
  tail?: string
  /** Unknown, but a file below a path that another command names. */
  contained?: boolean
  /** Commands that run to make the word. */
  substitutions: ShellNode[]
  /** Why it is not understood, where it is not. */
  fault?: string
}

/** The word that a node of the tree stands for. Never throws: what is not understood has a `fault`. */
export function wordOf(node: ShellNode, text: string): Word {
  const draft: Draft = { text: "", mask: "", dynamic: false, splits: false, substitutions: [] }
  read(node, text, draft, false)
  return finish(draft)
}

/** A word made of known text. */
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

/** A word that may be anything. */
export function unknownWord(text: string): Word {
  return { text, span: "*", dynamic: true, splits: true, glob: false, substitutions: [] }
}

/** `mask` is as long as `text` and holds only what the shell still interprets: quoted characters are `quoted`. */
interface Draft {
  text: string
  mask: string
  dynamic: boolean
  splits: boolean
  base?: "home" | "directory"
  baseLength?: number
  substitutions: ShellNode[]
  fault?: string
}

const quoted = "\u0000"
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
      addQuoted(draft, decodeAnsi(source.slice(2, -1), draft))
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
      draft.fault ??= expansionFault(node, text)
      addExpansion(draft, node, source.trimStart(), inQuotes)
      break
    case "number":
      if (node.children.length === 0) addUnquoted(draft, source)
      else addUnknown(draft, node, source, inQuotes)
      break
    default: {
      const fault = unknownFault(node.type, source)
      if (fault !== undefined) draft.fault ??= fault

      addUnknown(draft, node, source.trimStart(), inQuotes)
    }
  }
}

/** Parts whose value is made when the command runs. */
function unknownFault(type: string, source: string): string | undefined {
  if (type === "arithmetic_expansion") return arithmeticFault(source)
  const known = [
    "command_substitution",
    "process_substitution",
    "brace_expression",
    "extglob_pattern",
    "translated_string",
  ]
  return known.includes(type) ? undefined : `${type} is not understood`
}

function readString(node: ShellNode, text: string, draft: Draft): void {
  const end = node.end - 1
  let position = node.start + 1
  const literal = (to: number) => {
    const source = text.slice(position, to)
    // What the grammar took for plain text must not be an expansion for a shell.
    if (/`|\$[\w({[@*#?!$-]/.test(source.replaceAll(/\\./gs, "")))
      draft.fault ??= "a quoted part is not understood"
    addQuoted(draft, unescapeQuoted(source))
  }
  for (const child of node.children) {
    if (!child.named || child.type === "string_content") continue
    // The grammar counts blanks before an expansion as part of it.
    const start = child.start + (/^\s*/.exec(text.slice(child.start, child.end))?.[0].length ?? 0)
    literal(start)
    read(child, text, draft, true)
    position = child.end
  }
  literal(end)
}

function addUnquoted(draft: Draft, source: string): void {
  // As most words are: nothing in them means anything to a shell but file names.
  if (!/[\\`"'|&;()<>\s$]/.test(source)) {
    draft.text += source
    draft.mask += source
    return
  }
  if (/[`"'|&;()<>\s]|\$./s.test(source.replaceAll(/\\./gs, ""))) draft.fault ??= "a word is not understood"
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

function addUnknown(draft: Draft, node: ShellNode, source: string, inQuotes: boolean): void {
  collect(node, draft.substitutions)
  draft.text += source
  draft.mask += unknown.repeat(source.length)
  draft.dynamic = true
  if (!inQuotes) draft.splits = true
}

function addExpansion(draft: Draft, node: ShellNode, source: string, inQuotes: boolean): void {
  const known = /^\$\{?(HOME|PWD)\}?$/.exec(source)?.[1]
  if (known !== undefined && draft.text === "" && draft.base === undefined) {
    draft.base = known === "HOME" ? "home" : "directory"
    draft.baseLength = source.length
    addQuoted(draft, source)
    return
  }
  addUnknown(draft, node, source, inQuotes)
  if (/^\$\{?[@*]/.test(source)) draft.splits = true
}

function finish(draft: Draft): Word {
  const { text, mask } = draft
  const expands = /[*?[{~]/.test(mask)
  const glob = expands && /[*?]|\[.+\]/s.test(mask)
  const brace = expands && /\{[^}]*(?:,|\.\.).*\}/s.test(mask)
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
  if (draft.fault !== undefined) word.fault = draft.fault
  return word
}

/** Quoted wildcards stand for themselves: `?` is near enough. From a bracket or brace on anything may follow. */
function spanOf(text: string, mask: string): string {
  let span = ""
  for (let index = 0; index < text.length; index++) {
    const [character = "", role = ""] = [text[index], mask[index]]
    if (role === unknown) span = span.endsWith("*") ? span : `${span}*`
    else if ((role === "[" && mask.includes("]", index)) || role === "{") return `${span}*`
    else if (role === quoted && character === "*") span += "?"
    else span += character
  }
  return span
}

function collect(node: ShellNode, into: ShellNode[]): void {
  if (node.type === "command_substitution" || node.type === "process_substitution") into.push(node)
  else for (const child of node.children) collect(child, into)
}

function unescapeQuoted(text: string): string {
  return text.replaceAll(/\\([$`"\\\n])/g, (_, next: string) => (next === "\n" ? "" : next))
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

function decodeAnsi(text: string, draft: Draft): string {
  const escapes = /\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))/gs
  return text.replaceAll(escapes, (whole, hex, short, long, octal, letter: string | undefined) => {
    if (letter !== undefined && Object.hasOwn(ansiEscapes, letter)) return ansiEscapes[letter] ?? whole
    const code =
      octal === undefined ? Number.parseInt(hex ?? short ?? long ?? "", 16) : Number.parseInt(octal, 8)
    // Bytes above 127 make characters only together with their neighbours, and a zero ends the string.
    const bytes = hex !== undefined || octal !== undefined
    if (!(code > 0 && code <= 0x10ffff) || (bytes && code > 127)) {
      draft.fault ??= `the escape ${whole} is not understood`
      return whole
    }
    return String.fromCodePoint(code)
  })
}
