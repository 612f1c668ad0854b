import type { Node, ParseError, ParseErrorCode } from "jsonc-parser"
import { ConfigError, type Position, positionFinder } from "./errors.ts"
import { type ConfigEntry, type ConfigNode, maxDepth, type ObjectNode } from "./node.ts"

/**
 * Parses JSON with comments, trailing commas and a byte order mark. Empty text results in an empty object. If the text
 * is invalid, throws {@link ConfigError} with the position of the first error and a description of what was expected
 * there.
 */
export async function parseJsonc(text: string, file: string): Promise<ObjectNode> {
  const parse = await loadJsonc()
  return parse(text, file)
}

/** Loads the parser and returns a function that parses several texts. See {@link parseJsonc}. */
export async function loadJsonc(): Promise<(text: string, file: string) => ObjectNode> {
  const parser = await import("jsonc-parser")
  return (text, file) => parseWith(parser, text, file)
}

function parseWith({ parseTree, printParseErrorCode }: Parser, text: string, file: string): ObjectNode {
  const position = positionFinder(text, file)
  const errors: ParseError[] = []
  const root = guardDepth(position(0), () =>
    parseTree(text.replace(/^\uFEFF/, " "), errors, { allowTrailingComma: true, allowEmptyContent: true }),
  )
  const [first] = errors
  if (first) {
    throw new ConfigError([
      {
        position: position(first.offset),
        text: syntaxText(printParseErrorCode(first.error), text.slice(first.offset)),
      },
    ])
  }
  if (root === undefined) return { kind: "object", position: position(0), entries: [] }
  const tree = toNode(root, position)
  if (tree.kind === "object") return tree
  throw new ConfigError([
    { position: tree.position, text: 'a config file must contain an object: expected "{".' },
  ])
}

type Parser = Pick<typeof import("jsonc-parser"), "parseTree" | "printParseErrorCode">

function toNode(node: Node, position: (offset: number) => Position, depth = 0): ConfigNode {
  const children = node.children ?? []
  const at = position(node.offset)
  if (depth > maxDepth) throw tooDeep(at)
  if (node.type === "object") {
    const entries = children.flatMap((child) => toEntry(child, position, depth + 1))
    return { kind: "object", position: at, entries }
  }
  if (node.type === "array") {
    const items = children.map((child) => toNode(child, position, depth + 1))
    return { kind: "array", position: at, items }
  }
  return { kind: "scalar", position: at, value: node.value }
}

function toEntry(property: Node, position: (offset: number) => Position, depth: number): ConfigEntry[] {
  const [key, value] = property.children ?? []
  if (key === undefined || value === undefined) return []
  return [{ key: String(key.value), position: position(key.offset), value: toNode(value, position, depth) }]
}

/**
 * Reports deep nesting as a {@link ConfigError}. The parser is recursive, so a hostile file could otherwise crash the
 * process.
 */
function guardDepth<T>(position: Position, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw tooDeep(position, error)
  }
}

function tooDeep(position: Position, cause?: unknown): ConfigError {
  return new ConfigError(
    [{ position, text: `the file is nested too deeply: at most ${maxDepth} levels are supported.` }],
    cause,
  )
}

/** Descriptions of what was expected, by the parser's error name. */
const expectedTexts: Partial<Record<keyof typeof ParseErrorCode | "<unknown ParseErrorCode>", string>> = {
  InvalidSymbol: "a key or string in double quotes, a number, true, false or null",
  InvalidNumberFormat: "a number",
  PropertyNameExpected: "a key in double quotes",
  ValueExpected: "a value",
  ColonExpected: '":"',
  CommaExpected: '"," or a closing bracket',
  CloseBraceExpected: '"}"',
  CloseBracketExpected: '"]"',
  EndOfFileExpected: "the end of the file",
}

/** Messages for errors where naming the found character does not help. */
const syntaxTexts: typeof expectedTexts = {
  UnexpectedEndOfComment: 'expected "*/".',
  UnexpectedEndOfString: "expected a closing double quote.",
  UnexpectedEndOfNumber: "expected the rest of a number.",
  InvalidUnicode: "expected four hexadecimal digits after \\u.",
  InvalidEscapeCharacter: 'expected one of " \\ / b f n r t u after the backslash.',
  InvalidCharacter: "control characters in a string must be escaped.",
}

function syntaxText(name: keyof typeof expectedTexts, rest: string): string {
  const expected = expectedTexts[name]
  if (expected !== undefined) return `expected ${expected}, found ${foundText(rest)}.`
  return syntaxTexts[name] ?? "invalid JSON."
}

/** Describes the kind of the next token without quoting it, because it could be a secret. */
function foundText(rest: string): string {
  const [sign = ""] = rest.trimStart()
  if (sign === "") return "the end of the file: a closing bracket is missing"
  if (sign === '"') return "a string in double quotes"
  if (sign === "'") return "a single quote"
  if (/[\w$]/.test(sign)) return /\d/.test(sign) ? "a number" : "a word without quotes"
  return /[{}[\],:/#=;]/.test(sign) ? `"${sign}"` : "another character"
}
