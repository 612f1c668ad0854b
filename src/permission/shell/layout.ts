import type { ShellNode } from "./parse.ts"

/**
 * Why the tree cannot be trusted to read the text as a shell does, or nothing. The grammar skips blanks more freely
 * than any shell: it takes control characters for blanks and splits words at a line continuation. So every character
 * has to belong to a token or to be a blank that all shells agree on.
 */
export function layoutFault(tree: ShellNode, text: string): string | undefined {
  if (/(?![\t\n])\p{Cc}/u.test(text)) return "it holds control characters"
  if (tree.start > 0 && !isBlank(text.slice(0, tree.start))) return "its beginning is not understood"
  if (!isBlank(text.slice(tree.end))) return "its end is not understood"
  return gapFault(tree, text)
}

/**
 * Takes line continuations out where that cannot change a quoted text, a comment or a here-document, so that a word
 * broken over two lines is one word as it is for the shell.
 */
export function joinContinuations(text: string): string {
  if (!text.includes("\\\n") || /['#]|<</.test(text)) return text
  return text.replaceAll(/\\(.)/gs, (pair, next: string) => (next === "\n" ? "" : pair))
}

/** Text inside these is not made of tokens; only the commands within them are looked at. */
const opaqueToLayout = new Set([
  "string",
  "heredoc_body",
  "expansion",
  "ansi_c_string",
  "raw_string",
  "comment",
])

/** Their children are statements: two without a separator between them need a line end there. */
const sequences = new Set([
  "program",
  "subshell",
  "compound_statement",
  "do_group",
  "command_substitution",
  "case_item",
])

function gapFault(node: ShellNode, text: string): string | undefined {
  if (node.type === "ERROR" || node.type === "MISSING") return "its syntax is not understood"
  if (node.type === "too-deep") return "it is nested too deeply"
  const tokens = !opaqueToLayout.has(node.type)
  let previous: ShellNode | undefined
  for (const child of node.children) {
    const fault = gapFault(child, text)
    if (fault !== undefined) return fault
    if (tokens && previous) {
      const gap = text.slice(previous.end, child.start)
      if (!isBlank(gap)) return "characters between its words are not understood"
      const separate = sequences.has(node.type) && isStatement(previous) && isStatement(child)
      if (separate && !gap.includes("\n") && !text.slice(previous.start, previous.end).endsWith("\n")) {
        return "two commands stand in one place"
      }
    }
    previous = child
  }
  return undefined
}

function isStatement(node: ShellNode): boolean {
  return node.named && node.type !== "comment"
}

/** Blanks and line ends, and a line continuation that stands beside one: alone it would join two words. */
function isBlank(gap: string): boolean {
  if (gap === "" || gap === " ") return true
  return /^(?:[ \t\n]|\\\n)*$/.test(gap) && gap.replaceAll("\\\n", "") !== ""
}
