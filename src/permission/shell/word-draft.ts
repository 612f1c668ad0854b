import { decodeAnsi } from "./ansi-string.ts"
import { arithmeticFault, expansionFault } from "./expansions.ts"
import type { ShellNode } from "./parse.ts"

/** What a node of the tree makes of a word, without a judgement on it. Never throws. */
export function draftOf(node: ShellNode, text: string): Draft {
  const draft: Draft = { text: "", mask: "", dynamic: false, splits: false, substitutions: [] }
  read(node, text, draft, false)
  return draft
}

/**
 * A word while it is read. `mask` is as long as `text` and holds only what the shell still interprets: quoted characters
 * are {@link quoted} in it, unknown ones {@link unknown}.
 */
export interface Draft {
  text: string
  mask: string
  dynamic: boolean
  splits: boolean
  base?: "home" | "directory"
  baseLength?: number
  substitutions: ShellNode[]
  fault?: string
}

/** In a mask: a character that the shell takes as it is. */
export const quoted = "\u0000"
/** In a mask: a character that is not known before the command runs. */
export const unknown = "\u0001"

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

function addAnsi(draft: Draft, source: string): void {
  const { text, fault } = decodeAnsi(source)
  if (fault !== undefined) draft.fault ??= fault
  addQuoted(draft, text)
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

function collect(node: ShellNode, into: ShellNode[]): void {
  if (node.type === "command_substitution" || node.type === "process_substitution") into.push(node)
  else for (const child of node.children) collect(child, into)
}

function unescapeQuoted(text: string): string {
  return text.replaceAll(/\\([$`"\\\n])/g, (_, next: string) => (next === "\n" ? "" : next))
}
