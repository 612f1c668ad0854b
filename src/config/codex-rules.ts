import { ConfigError, type Position, positionFinder } from "./errors.ts"

/** A value in a rules file. */
export type RuleValue = string | number | boolean | null | readonly RuleValue[]

/** A call in a rules file of Codex, such as `prefix_rule(pattern = ["rm"], decision = "forbidden")`. */
export interface RuleCall {
  name: string
  position: Position
  args: ReadonlyMap<string, RuleValue>
}

/**
 * Parses a rules file of Codex: a sequence of calls with named literal arguments. Throws `ConfigError` with the position
 * of the first other expression, because a rule that is computed cannot be read.
 */
export function parseCodexRules(text: string, file: string): RuleCall[] {
  const positionAt = positionFinder(text, file)
  const tokens = tokensOf(text, positionAt)
  let next = 0

  function fail(expected: string): never {
    throw new ConfigError([
      {
        position: positionAt(tokens[next]?.offset ?? text.length),
        text: `expected ${expected}. Tackle reads only calls with literal arguments, such as prefix_rule(pattern = ["rm"], decision = "forbidden").`,
      },
    ])
  }
  function accept(sign: string): boolean {
    const token = tokens[next]
    if (token?.kind !== "sign" || token.text !== sign) return false
    next += 1
    return true
  }
  function expect(sign: string): void {
    if (!accept(sign)) fail(`"${sign}"`)
  }
  function word(): string {
    const token = tokens[next]
    if (token?.kind !== "word") fail("a name")
    next += 1
    return token.text
  }

  function call(): RuleCall {
    const position = positionAt(tokens[next]?.offset ?? 0)
    const name = word()
    const args = new Map<string, RuleValue>()
    expect("(")
    while (!accept(")")) {
      const key = word()
      expect("=")
      args.set(key, value())
      if (!accept(",")) {
        expect(")")
        break
      }
    }
    return { name, position, args }
  }

  function value(): RuleValue {
    const token = tokens[next]
    if (token?.kind === "sign" && (token.text === "[" || token.text === "(")) {
      next += 1
      return list(token.text === "[" ? "]" : ")")
    }
    if (token?.kind === "string") {
      next += 1
      return token.text
    }
    if (token?.kind !== "word") fail("a literal value")
    next += 1
    const known = new Map<string, RuleValue>([
      ["True", true],
      ["False", false],
      ["None", null],
    ]).get(token.text)
    if (known !== undefined) return known
    if (/^\d+$/.test(token.text)) return Number(token.text)
    next -= 1
    return fail("a literal value")
  }

  function list(close: string): RuleValue[] {
    const items: RuleValue[] = []
    while (!accept(close)) {
      items.push(value())
      if (!accept(",")) {
        expect(close)
        break
      }
    }
    return items
  }

  const calls: RuleCall[] = []
  while (next < tokens.length) calls.push(call())
  return calls
}

interface Token {
  kind: "word" | "string" | "sign"
  text: string
  offset: number
}

const tokenPattern =
  /(?<blank>[\s;]+|#[^\n]*)|(?<string>(?<raw>[rR]?)(?:"""(?<long>(?:\\[\s\S]|[^\\])*?)"""|"(?<double>(?:\\.|[^"\\\n])*)"|'(?<single>(?:\\.|[^'\\\n])*)'))|(?<word>\w+)|(?<sign>[()[\]=,])/y

function tokensOf(text: string, positionAt: (offset: number) => Position): Token[] {
  const tokens: Token[] = []
  let offset = text.startsWith("\uFEFF") ? 1 : 0
  while (offset < text.length) {
    tokenPattern.lastIndex = offset
    const found = tokenPattern.exec(text)
    if (!found) {
      throw new ConfigError([
        {
          position: positionAt(offset),
          text: "expected a call with literal arguments, found another character.",
        },
      ])
    }
    const { blank, string, raw, long, double, single, word, sign } = found.groups ?? {}
    const quoted = long ?? double ?? single ?? ""
    if (string !== undefined) tokens.push({ kind: "string", text: raw ? quoted : unescaped(quoted), offset })
    else if (word !== undefined) tokens.push({ kind: "word", text: word, offset })
    else if (blank === undefined) tokens.push({ kind: "sign", text: sign ?? "", offset })
    offset += found[0].length
  }
  return tokens
}

const escapes: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", "\n": "" }

function unescaped(text: string): string {
  return text.replaceAll(/\\([\s\S])/g, (_, sign: string) => escapes[sign] ?? sign)
}
