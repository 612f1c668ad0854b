import { wildcardMatch } from "../../util/wildcard.ts"
import type { Word } from "./words.ts"

/** The result of an expression for a file. Undefined if the result depends on more than the file's name. */
type Answer = boolean | undefined

/** An expression of `find` that can be tested on a name. `print` is called if the file may be printed. */
type Expression = (name: string, print: () => void) => Answer

/**
 * Returns a test for the names of the files that a `find` command may print, one on each line or separated by zero
 * bytes. Returns undefined if the command may print anything else.
 */
export function printedNames(words: readonly Word[]): ((name: string) => boolean) | undefined {
  const texts = words.map(({ text }) => text)
  const start = texts.findIndex((text) => /^(?:-(?![HLPO])|\(|!)/.test(text))
  if (start === -1) return () => true
  if (texts.some((text) => otherOutput.has(text))) return undefined
  const parser = { texts: texts.slice(start), at: 0 }
  const expression = readAlternatives(parser)
  if (!expression || parser.at < parser.texts.length) return undefined
  const prints = parser.texts.some((text) => text === "-print" || text === "-print0")
  return (name) => {
    let printed = false
    const answer = expression(name, () => {
      printed = true
    })
    return prints ? printed : answer !== false
  }
}

const otherOutput: ReadonlySet<string> = new Set(["-printf", "-ls", "-quit", ","])

interface Parser {
  texts: readonly string[]
  at: number
}

function readAlternatives(parser: Parser): Expression | undefined {
  const parts: Expression[] = []
  do {
    const part = readSequence(parser)
    if (!part) return undefined
    parts.push(part)
  } while (takes(parser, ["-o", "-or"]))
  return (name, print) => {
    let answer: Answer = false
    for (const part of parts) {
      const found = part(name, print)
      if (found === true) return true
      if (found === undefined) answer = undefined
    }
    return answer
  }
}

function readSequence(parser: Parser): Expression | undefined {
  const parts: Expression[] = []
  while (parser.at < parser.texts.length && ![")", "-o", "-or"].includes(parser.texts[parser.at] ?? "")) {
    if (parts.length > 0) takes(parser, ["-a", "-and"])
    const part = readTest(parser)
    if (!part) return undefined
    parts.push(part)
  }
  if (parts.length === 0) return undefined
  return (name, print) => {
    let answer: Answer = true
    for (const part of parts) {
      const found = part(name, print)
      if (found === false) return false
      if (found === undefined) answer = undefined
    }
    return answer
  }
}

function readTest(parser: Parser): Expression | undefined {
  if (takes(parser, ["!", "-not"])) {
    const inner = readTest(parser)
    return (
      inner &&
      ((name, print) => {
        const found = inner(name, print)
        return found === undefined ? undefined : !found
      })
    )
  }
  if (takes(parser, ["("])) {
    const inner = readAlternatives(parser)
    return takes(parser, [")"]) ? inner : undefined
  }
  const test = parser.texts[parser.at] ?? ""
  if (!test.startsWith("-")) return undefined
  parser.at += 1
  if (test === "-print" || test === "-print0")
    return (_, print) => {
      print()
      return true
    }
  if (test === "-false") return () => false
  if (alwaysTrue.has(test)) return () => true
  if (withoutValue.has(test)) return () => undefined
  const value = parser.texts[parser.at] ?? ""
  parser.at += 1
  if (test === "-maxdepth" || test === "-mindepth") return () => true
  if ((test !== "-name" && test !== "-iname") || !/^[\w.*+@,=-]+$/.test(value)) return () => undefined
  return (name) => {
    if (test === "-name") return wildcardMatch(name, value)
    return isAscii(name) ? wildcardMatch(name.toLowerCase(), value.toLowerCase()) : undefined
  }
}

/** Returns true for printable ASCII. `find` and JavaScript may disagree on the case of other letters. */
function isAscii(name: string): boolean {
  return /^[ -~]*$/.test(name)
}

const alwaysTrue: ReadonlySet<string> = new Set([
  "-true",
  "-prune",
  "-depth",
  "-daystart",
  "-mount",
  "-xdev",
  "-follow",
])
const withoutValue: ReadonlySet<string> = new Set([
  "-empty",
  "-executable",
  "-nogroup",
  "-nouser",
  "-readable",
  "-writable",
])

function takes(parser: Parser, texts: readonly string[]): boolean {
  const found = texts.includes(parser.texts[parser.at] ?? "")
  if (found) parser.at += 1
  return found
}
