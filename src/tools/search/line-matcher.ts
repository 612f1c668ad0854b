import vm from "node:vm"
import { errorMessage, systemCode, TackleError } from "../../util/errors.ts"
import { assertSingleLine, InvalidPatternError } from "./search-engine.ts"

/** The pattern takes exponential time on some line. */
export class SlowPatternError extends TackleError {
  constructor(pattern: string) {
    super(`The pattern takes too long to match: ${pattern}\nAvoid nested repetition such as (a+)+.`, {
      code: "search.slow-pattern",
      recoverable: true,
    })
  }
}

/** Milliseconds for one batch of lines. A reasonable pattern needs less than one. */
const batchTimeout = 2000

/** Names of character classes that other dialects write as `[[:name:]]`, and what stands for them here. */
const namedClasses: Record<string, string> = {
  alnum: "A-Za-z0-9",
  alpha: "A-Za-z",
  blank: " \\t",
  cntrl: "\\x00-\\x1f\\x7f",
  digit: "0-9",
  lower: "a-z",
  punct: "!-\\/:-@\\[-`{-~",
  space: "\\s",
  upper: "A-Z",
  word: "\\w",
  xdigit: "A-Fa-f0-9",
}

/**
 * Compiles a pattern with the language's own regular expressions to a function that returns the indexes of the lines
 * that match. Leading `(?i)` and `[[:alpha:]]` are understood; other differences of dialect are not bridged. The
 * expression runs under a watchdog, since it could otherwise hold the process for ever. Throws
 * {@link InvalidPatternError} at once, {@link SlowPatternError} from the function.
 */
export function createLineMatcher(pattern: string): (lines: readonly string[]) => number[] {
  const context = vm.createContext(
    Object.assign(Object.create(null), { lines: [], expression: compile(pattern) }),
  )
  // Inside a function, since every look at a global of the context takes a slow way round.
  const script = new vm.Script(`((lines, expression) => {
    const hits = []
    for (let index = 0; index < lines.length; index++) if (expression.test(lines[index])) hits.push(index)
    return hits
  })(lines, expression)`)
  return (lines) => {
    if (lines.length === 0) return []
    context.lines = lines
    try {
      return script.runInContext(context, { timeout: batchTimeout })
    } catch (error) {
      if (systemCode(error) === "ERR_SCRIPT_EXECUTION_TIMEOUT") throw new SlowPatternError(pattern)
      throw error
    }
  }
}

function compile(pattern: string): RegExp {
  assertSingleLine(pattern)
  const [, inline = "", rest = ""] = /^(?:\(\?([ims]+)\))?(.*)$/s.exec(pattern) ?? []
  const flags = [...new Set(inline)].join("")
  const source = rest.replace(/\[:(\w+):\]/g, (whole, name: string) => namedClasses[name] ?? whole)
  try {
    return tried(new RegExp(source, `${flags}u`))
  } catch {
    // Outside of Unicode mode needless backslashes are allowed, as in other dialects.
    return compileLoosely(pattern, source, flags)
  }
}

function compileLoosely(pattern: string, source: string, flags: string): RegExp {
  try {
    return tried(new RegExp(source, flags))
  } catch (error) {
    throw new InvalidPatternError(pattern, errorMessage(error))
  }
}

/** An expression that is too large says so only when it is first used. */
function tried(expression: RegExp): RegExp {
  expression.test("")
  return expression
}
