/** Tests a script. A regular expression is one. */
export interface ScriptTest {
  test(script: string): boolean
}

/** Accepts awk scripts that cannot run commands, write files, or read anything but their input. */
export const plainAwk: ScriptTest = { test: isPlainAwk }

/** Accepts the scripts of {@link plainAwk} that use no environment variables and name no files. */
export const printingAwk: ScriptTest = {
  test: (script) => isPlainAwk(script) && !/ENVIRON|ARGV|ARGC|PROCINFO|SYMTAB|FUNCTAB/.test(script),
}

const tokens =
  /"(?:[^"\\\n]|\\[^\n])*"|[A-Za-z_]\w*|\d[\w.]*|\s+|\/(?:[^/\\\n[\]]|\\[^\n]|\[[^\]\\\n/]+\])+\/|\|\||&&|[<>=!]=|./gsy

/** Words after which `/` starts a regular expression. */
const keywords = /^(?:print|printf|return|in|else|do|delete|exit|case|if|while)$/

/**
 * Reads the script token by token. `>` compares in a pattern and within parentheses, but redirects in a `print`
 * statement. Rejects scripts in which `/` could be read as a division or as a regular expression.
 */
function isPlainAwk(script: string): boolean {
  if (/system|getline|close|fflush|@|`|\\\n|#/.test(script)) return false
  let [parentheses, printing, last] = [0, false, ""]
  for (const [token] of script.matchAll(tokens)) {
    if (/^\s/.test(token)) continue
    if (token[0] === "/") {
      const divides = /[\w\])"$]$/.test(last) && !keywords.test(last)
      if (divides || token === "/") return false
    }
    if (token === "|" || (token === ">" && printing && parentheses === 0)) return false
    if (token === "(") parentheses += 1
    else if (token === ")") parentheses -= 1
    else if (/^[;{}]$/.test(token)) printing = false
    else if (/^printf?$/.test(token)) printing = true
    last = token
  }
  return true
}
