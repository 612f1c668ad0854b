import type { ShellNode } from "./parse.ts"
import { type Draft, draftOf, quoted, unknown } from "./word-draft.ts"

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
  return finish(draftOf(node, text))
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
