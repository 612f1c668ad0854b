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
