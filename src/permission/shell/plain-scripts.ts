/** Tests a script. Every `RegExp` is a `ScriptTest`. */
export interface ScriptTest {
  test(script: string): boolean
}

/** Accepts awk scripts that cannot run commands, write files, or read anything but their input. */
export const plainAwk: ScriptTest = { test: isPlainAwk }

/** Accepts the scripts of {@link plainAwk} that neither use environment variables nor name files. */
export const printingAwk: ScriptTest = {
  test: (script) => isPlainAwk(script) && !/ENVIRON|ARGV|ARGC|PROCINFO|SYMTAB|FUNCTAB/.test(script),
}

const tokens =
  /"(?:[^"\\\n]|\\[^\n])*"|[A-Za-z_]\w*|\d[\w.]*|\s+|\/(?:[^/\\\n[\]]|\\[^\n]|\[(?!\^?\])(?:\[:[a-z]+:\]|[^\][\\\n/])+\])+\/|\|\||&&|[<>=!]=|./gsy

/** Tokens after which `/` starts a regular expression. After any other token, `/` could be a division. */
const beforeExpression = /^(?:[{};,(!~]|\|\||&&|print|printf|return|in|else|do)?$/

/**
 * Reads the script token by token. `>` compares in a pattern and within parentheses, but redirects in a `print`
 * statement. Rejects scripts in which `/` could be either a division or the start of a regular expression.
 */
function isPlainAwk(script: string): boolean {
  if (/system|getline|close|fflush|@|`|\\\n|#/.test(script)) return false
  let [parentheses, printing, last] = [0, false, ""]
  for (const [token] of script.matchAll(tokens)) {
    if (/^\s/.test(token)) continue
    if (token[0] === "/" && (token === "/" || !beforeExpression.test(last))) return false
    if (token === '"' || token === "|" || (token === ">" && printing && parentheses === 0)) return false
    if (token === "(") parentheses += 1
    else if (token === ")") parentheses -= 1
    else if (/^[;{}]$/.test(token)) printing = false
    else if (/^printf?$/.test(token)) printing = true
    last = token
  }
  return true
}

/** Accepts `p`, `d`, `q`, `=` and `s` commands of sed, with addresses, and without the flags `e` and `w`. */
export const plainSed: ScriptTest = { test: isPlainSed }

/**
 * Matches a bracket expression without the delimiter. In some versions of sed, the delimiter may be part of the bracket
 * expression.
 */
const sedBracket = (delimiter: string) =>
  String.raw`\[(?!\^?\])(?:\[:[a-z]+:\]|(?!${delimiter})[^\][\\\n]|\\[^\]\n])+\]`
const sedPattern = String.raw`/(?:[^/\\\n[]|${sedBracket("/")})*/`
const sedAddress = String.raw`(?:\d+|\$|${sedPattern})(?:,(?:\+?\d+|\$|${sedPattern}))?`
const sedPart = (other: string) => String.raw`(?:(?!\1)${other}|\\[^\n])*\1`
const sedReplaced = sedPart(String.raw`(?:[^\\\n[]|${sedBracket(String.raw`\1`)})`)
const sedCommand = new RegExp(
  String.raw`(?:${sedAddress})?[ \t]*(?:[pdq=]|s([/|#,:!@%])${sedReplaced}${sedPart(String.raw`[^\\\n]`)}[gpiI\d]*)`,
  "y",
)
const sedSeparator = /[ \t]*(?:[;\n][;\s]*|$)/y

/** Reads one command after the other. One regular expression for all commands could backtrack for minutes. */
function isPlainSed(script: string): boolean {
  let position = script.length - script.trimStart().length
  const skip = (pattern: RegExp) => {
    pattern.lastIndex = position
    const found = pattern.exec(script)
    if (found) position = pattern.lastIndex
    return found !== null
  }
  do if (!skip(sedCommand) || !skip(sedSeparator)) return false
  while (position < script.length)
  return true
}
