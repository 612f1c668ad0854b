import type { Node, Language as TreeSitterLanguage, Parser as TreeSitterParser } from "web-tree-sitter"
import { packagedFile } from "../../util/packaged-file.ts"

/** A node of the syntax tree as plain data. Positions are indices into the text. */
export interface ShellNode {
  readonly type: string
  readonly named: boolean
  readonly start: number
  readonly end: number
  readonly children: readonly ShellNode[]
}

/** Maximum depth of the tree. Deeper nodes have the type `too-deep`. */
const maxDepth = 200

/** Maximum number of nodes in a tree. Larger trees take seconds to judge. */
const maxNodes = 30_000

/**
 * Maximum number of `|` in a command text. For an incomplete pipeline of n commands, the parser needs time and memory
 * in proportion to the square of n, and checks its time limit only afterwards. A pipeline of 2,000 commands takes 0.3 s
 * and 400 MB.
 */
const maxPipes = 1_000

/** The time, in ms, that remains for parsing a command text and the texts inside it. */
export interface ParseTime {
  left: number
}

/**
 * Parses text as bash and returns its syntax tree. Returns undefined if the remaining time is not sufficient or the
 * text has too many pipes or nodes. Subtracts the time that parsing takes from the remaining time. Syntax errors are
 * nodes of the types `ERROR` and `MISSING`. The first call loads the parser.
 */
export async function parseShell(text: string, time: ParseTime): Promise<ShellNode | undefined> {
  if (text.split(singlePipe, maxPipes + 2).length > maxPipes + 1) return undefined
  loaded ??= loadParser()
  const { parser, setFlags } = await loaded
  const start = performance.now()
  try {
    return withoutOptimizing(setFlags, () => parseUntil(parser, text, start + time.left))
  } finally {
    time.left -= performance.now() - start
  }
}

/** Matches `|`, but not `||`. */
const singlePipe = /(?<!\|)\|(?!\|)/

function parseUntil(parser: TreeSitterParser, text: string, deadline: number): ShellNode | undefined {
  const tree = parser.parse(text, null, { progressCallback: () => performance.now() > deadline })
  if (!tree) {
    parser.reset()
    return undefined
  }
  try {
    return tree.rootNode.descendantCount > maxNodes ? undefined : toPlain(tree.rootNode, 0)
  } finally {
    tree.delete()
  }
}

/**
 * Runs `work` while V8 does not optimize WebAssembly. The grammar is one very large function. V8's optimizing compiler
 * would need 500 MB of memory and half a second of CPU time for it after about 100 commands. Without optimization,
 * parsing a command takes well under 1 ms.
 *
 * V8 reads both flags when a function has run often enough, and still optimizes if only one of the flags is off. The
 * flags are part of the key of V8's code cache, so they are restored.
 */
function withoutOptimizing<T>(setFlags: LoadedParser["setFlags"], work: () => T): T {
  setFlags("--no-wasm-tier-up")
  setFlags("--no-wasm-dynamic-tiering")
  try {
    return work()
  } finally {
    setFlags("--wasm-tier-up")
    setFlags("--wasm-dynamic-tiering")
  }
}

/** The parser, and the function that changes V8's flags. */
interface LoadedParser {
  parser: TreeSitterParser
  setFlags(flags: string): void
}

let loaded: Promise<LoadedParser> | undefined

async function loadParser(): Promise<LoadedParser> {
  const [{ Language, Parser }, { setFlagsFromString }] = await Promise.all([
    import("web-tree-sitter"),
    import("node:v8"),
  ])
  return { parser: await openParser(Language, Parser), setFlags: setFlagsFromString }
}

async function openParser(
  Language: typeof TreeSitterLanguage,
  Parser: typeof TreeSitterParser,
): Promise<TreeSitterParser> {
  await Parser.init({
    locateFile: () => packagedFile("web-tree-sitter.wasm", "web-tree-sitter/web-tree-sitter.wasm"),
  })
  const language = await Language.load(
    packagedFile("tree-sitter-bash.wasm", "tree-sitter-bash/tree-sitter-bash.wasm"),
  )
  return new Parser().setLanguage(language)
}

function toPlain(node: Node, depth: number): ShellNode {
  const { startIndex: start, endIndex: end, isNamed: named } = node
  if (depth > maxDepth) return { type: "too-deep", named, start, end, children: [] }
  const children: ShellNode[] = []
  for (const child of node.children) if (child) children.push(toPlain(child, depth + 1))
  return { type: node.isMissing ? "MISSING" : node.type, named, start, end, children }
}

/**
 * Returns why the tree may differ from how a shell parses the text. The grammar is more lenient than any shell: it
 * treats control characters as blanks and splits words at line continuations. Each character must therefore belong to a
 * token or be a blank in every shell.
 */
export function layoutProblem(tree: ShellNode, text: string): string | undefined {
  if (/(?![\t\n])\p{Cc}/u.test(text)) return "it contains control characters"
  if (tree.start > 0 && !isBlank(text.slice(0, tree.start))) return "its beginning cannot be parsed"
  if (!isBlank(text.slice(tree.end))) return "its end cannot be parsed"
  return gapProblem(tree, text)
}

/**
 * Joins lines at line continuations, so that a word on two lines becomes one word, as in a shell. Returns text that
 * contains single quotes, comments or here-documents unchanged.
 */
export function joinContinuations(text: string): string {
  if (!text.includes("\\\n") || /['#]|<</.test(text)) return text
  return text.replaceAll(/\\(.)/gs, (pair, next: string) => (next === "\n" ? "" : pair))
}

/** Nodes whose text does not consist of tokens. Only the commands inside these nodes are checked. */
const opaqueToLayout = new Set([
  "string",
  "heredoc_body",
  "expansion",
  "ansi_c_string",
  "raw_string",
  "comment",
])

/** Nodes whose children are statements. Two statements without a separator must be on different lines. */
const sequences = new Set([
  "program",
  "subshell",
  "compound_statement",
  "do_group",
  "command_substitution",
  "case_item",
])

function gapProblem(node: ShellNode, text: string): string | undefined {
  if (node.type === "ERROR" || node.type === "MISSING") return "its syntax cannot be parsed"
  if (node.type === "too-deep") return "it is nested too deeply"
  const tokens = !opaqueToLayout.has(node.type)
  let previous: ShellNode | undefined
  for (const child of node.children) {
    const problem = gapProblem(child, text)
    if (problem !== undefined) return problem
    if (tokens && previous) {
      const gap = text.slice(previous.end, child.start)
      if (!isBlank(gap)) return "characters between its words cannot be parsed"
      const separate = sequences.has(node.type) && isStatement(previous) && isStatement(child)
      if (separate && !gap.includes("\n") && !text.slice(previous.start, previous.end).endsWith("\n")) {
        return "it has two commands without a separator"
      }
    }
    previous = child
  }
  return undefined
}

function isStatement(node: ShellNode): boolean {
  return node.named && node.type !== "comment"
}

/**
 * Returns true for blanks, line endings, and line continuations next to a blank. A continuation alone would join two
 * words.
 */
function isBlank(gap: string): boolean {
  if (gap === "" || gap === " ") return true
  return /^(?:[ \t\n]|\\\n)*$/.test(gap) && gap.replaceAll("\\\n", "") !== ""
}
