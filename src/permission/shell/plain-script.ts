import type { ShellNode } from "./parse.ts"

/**
 * The syntax tree of a text so plain that every shell reads it alike: commands of bare words, `'quoted'` ones and
 * `"quoted"` ones with nothing to expand, joined by `;`, by `&&` and `||`, or by `|`. It is the very tree that the parser
 * makes, to which a property test holds it; undefined for any other text. Most commands are of this kind, and loading the
 * parser takes longer than they run.
 */
export function readPlainScript(text: string): ShellNode | undefined {
  if (text.length > longest || !plain.test(text)) return undefined
  const children: ShellNode[] = []
  for (const { tokens, operator } of splitAt([";"], tokensOf(text))) {
    const node = statement(tokens)
    if (!node) return undefined
    children.push(node)
    if (operator) children.push(leaf(operator.text, operator, false))
  }
  return branch("program", children)
}

/** In characters. Beyond it the parser is worth its time. */
const longest = 4_096

const name = "[A-Za-z_./][A-Za-z0-9_./-]*"
// Not with an equals sign in front: `==` is an operator in tests.
const word = "[A-Za-z0-9_./:,%+-][A-Za-z0-9_./:=,%+-]*"
const quoted = "'[^'\\n\\r\\0]*'"
// Blanks alone are no content for the parser, and `!` is one of history for some shells.
const string = '"[^"`$\\\\!\\s\\0][^"`$\\\\!\\n\\r\\0]*"'
const operator = ";|&&|\\|\\|?"
const command = `${name}(?: +(?:${word}|${quoted}|${string}))*`
const plain = new RegExp(`^${command}(?: *(?:${operator}) *${command})*$`)

/** Words that begin something else than a command. */
const reserved: ReadonlySet<string> = new Set([
  ...[
    "if",
    "then",
    "else",
    "elif",
    "fi",
    "for",
    "while",
    "until",
    "do",
    "done",
    "case",
    "esac",
    "select",
    "in",
  ],
  ...["function", "coproc", "declare", "typeset", "export", "readonly", "local", "unset", "unsetenv"],
])

interface Token {
  kind: "word" | "quoted" | "string" | "operator"
  text: string
  start: number
  end: number
}

interface Piece {
  tokens: Token[]
  /** What ends it; the last piece ends with the text. */
  operator?: Token
}

function tokensOf(text: string): Token[] {
  return Array.from(text.matchAll(tokens), ({ 0: found, index: start }) => ({
    kind: kindOf(found),
    text: found,
    start,
    end: start + found.length,
  }))
}

const tokens = new RegExp(`${word}|${quoted}|${string}|${operator}`, "g")

function kindOf(text: string): Token["kind"] {
  const first = text[0]
  if (first === "'") return "quoted"
  if (first === '"') return "string"
  return first === ";" || first === "|" || first === "&" ? "operator" : "word"
}

function splitAt(operators: readonly string[], tokens: readonly Token[]): Piece[] {
  const pieces: Piece[] = []
  let piece: Piece = { tokens: [] }
  for (const token of tokens) {
    if (token.kind === "operator" && operators.includes(token.text)) {
      pieces.push({ ...piece, operator: token })
      piece = { tokens: [] }
    } else piece.tokens.push(token)
  }
  return [...pieces, piece]
}

/** A command, a pipeline, or a list; pipes within lists are left to the parser. */
function statement(tokens: readonly Token[]): ShellNode | undefined {
  const pieces = splitAt(["&&", "||", "|"], tokens)
  if (pieces.some(({ tokens: [first] }) => first && reserved.has(first.text))) return undefined
  const pipes = pieces.filter(({ operator }) => operator?.text === "|").length
  if (pipes === 0) return listOf(pieces)
  if (pipes < pieces.length - 1) return undefined
  return branch("pipeline", pieces.flatMap(withOperator))
}

/** `a && b || c` is a list whose first part is the list `a && b`. */
function listOf(pieces: readonly Piece[]): ShellNode | undefined {
  let list: ShellNode[] = []
  for (const piece of pieces) {
    const [node, ...after] = withOperator(piece)
    if (!node) return undefined
    list = list.length === 0 ? [node, ...after] : [branch("list", [...list, node]), ...after]
  }
  return list[0]
}

function withOperator({ tokens, operator }: Piece): ShellNode[] {
  return operator ? [commandOf(tokens), leaf(operator.text, operator, false)] : [commandOf(tokens)]
}

function commandOf(tokens: readonly Token[]): ShellNode {
  const [first, ...rest] = tokens.map(wordOf)
  return branch("command", first ? [branch("command_name", [first]), ...rest] : [])
}

function wordOf(token: Token): ShellNode {
  if (token.kind === "quoted") return leaf("raw_string", token)
  if (token.kind === "word") return leaf(/^-?\d+$/.test(token.text) ? "number" : "word", token)
  const { start, end } = token
  return branch("string", [
    leaf('"', { start, end: start + 1 }, false),
    leaf("string_content", { start: start + 1, end: end - 1 }),
    leaf('"', { start: end - 1, end }, false),
  ])
}

function leaf(type: string, { start, end }: Pick<Token, "start" | "end">, named = true): ShellNode {
  return { type, named, start, end, children: [] }
}

function branch(type: string, children: readonly ShellNode[]): ShellNode {
  return { type, named: true, start: children[0]?.start ?? 0, end: children.at(-1)?.end ?? 0, children }
}
