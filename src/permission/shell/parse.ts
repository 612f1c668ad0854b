import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import type { Node, Language as TreeSitterLanguage, Parser as TreeSitterParser } from "web-tree-sitter"

/** A node of the syntax tree as plain data. Positions are indices into the text. */
export interface ShellNode {
  readonly type: string
  readonly named: boolean
  readonly start: number
  readonly end: number
  readonly children: readonly ShellNode[]
}

/** Deeper nesting is cut off: what lies below has the type `too-deep`. */
const maxDepth = 200

/** A text that takes longer than this to parse, in milliseconds, is not understood. */
const maxParseMs = 2_000

/**
 * The syntax tree of a text in the language of bash, or nothing where it could not be made in time. Faults in the text
 * are nodes of the types `ERROR` and `MISSING`. The parser is loaded by the first call.
 */
export async function parseShell(text: string): Promise<ShellNode | undefined> {
  loaded ??= loadParser()
  const parser = await loaded
  const deadline = Date.now() + maxParseMs
  const tree = parser.parse(text, null, { progressCallback: () => Date.now() > deadline })
  if (!tree) {
    parser.reset()
    return undefined
  }
  try {
    return toPlain(tree.rootNode, 0)
  } finally {
    tree.delete()
  }
}

let loaded: Promise<TreeSitterParser> | undefined

/**
 * The grammar is one giant function. V8's optimising compiler would take 500 MB of memory and both cores for it, in the
 * background of the first commands; the baseline code parses one in well under a millisecond. A module keeps the budget
 * with which it is compiled, so the setting is back to V8's default for whatever comes after.
 */
async function loadParser(): Promise<TreeSitterParser> {
  const [{ Language, Parser }, { setFlagsFromString }] = await Promise.all([
    import("web-tree-sitter"),
    import("node:v8"),
  ])
  setFlagsFromString(`--wasm-tiering-budget=${neverOptimised}`)
  try {
    return await openParser(Language, Parser)
  } finally {
    setFlagsFromString(`--wasm-tiering-budget=${defaultTieringBudget}`)
  }
}

/** As many bytes of code have to run before V8 optimises: the largest it takes, and what it has by default. */
const neverOptimised = 2_000_000_000
const defaultTieringBudget = 13_000_000

async function openParser(
  Language: typeof TreeSitterLanguage,
  Parser: typeof TreeSitterParser,
): Promise<TreeSitterParser> {
  await Parser.init({
    locateFile: () => locate("web-tree-sitter.wasm", "web-tree-sitter/web-tree-sitter.wasm"),
  })
  const language = await Language.load(
    locate("tree-sitter-bash.wasm", "tree-sitter-bash/tree-sitter-bash.wasm"),
  )
  return new Parser().setLanguage(language)
}

/** The bundle has its copy beside it; the sources use the one in the package. */
function locate(file: string, inPackage: string): string {
  const beside = fileURLToPath(new URL(`./${file}`, import.meta.url))
  return existsSync(beside) ? beside : createRequire(import.meta.url).resolve(inPackage)
}

function toPlain(node: Node, depth: number): ShellNode {
  const { startIndex: start, endIndex: end, isNamed: named } = node
  if (depth > maxDepth) return { type: "too-deep", named, start, end, children: [] }
  const children: ShellNode[] = []
  for (const child of node.children) if (child) children.push(toPlain(child, depth + 1))
  return { type: node.isMissing ? "MISSING" : node.type, named, start, end, children }
}

/**
 * Why the tree cannot be trusted to read the text as a shell does, or nothing. The grammar skips blanks more freely
 * than any shell: it takes control characters for blanks and splits words at a line continuation. So every character
 * has to belong to a token or to be a blank that all shells agree on.
 */
export function layoutProblem(tree: ShellNode, text: string): string | undefined {
  if (/(?![\t\n])\p{Cc}/u.test(text)) return "it holds control characters"
  if (tree.start > 0 && !isBlank(text.slice(0, tree.start))) return "its beginning is not understood"
  if (!isBlank(text.slice(tree.end))) return "its end is not understood"
  return gapProblem(tree, text)
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

function gapProblem(node: ShellNode, text: string): string | undefined {
  if (node.type === "ERROR" || node.type === "MISSING") return "its syntax is not understood"
  if (node.type === "too-deep") return "it is nested too deeply"
  const tokens = !opaqueToLayout.has(node.type)
  let previous: ShellNode | undefined
  for (const child of node.children) {
    const problem = gapProblem(child, text)
    if (problem !== undefined) return problem
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
