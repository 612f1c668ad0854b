/** What one line of code says of how the lines after it are indented. */
export interface LineStructure {
  /** How many brackets it closes before anything else. */
  closes: number
  /** How many it leaves open. */
  opens: number
  /** True if the line does not end what it says: the next is indented by one level more, and it alone. */
  goesOn: boolean
}

/** With these a line goes on from the one above, or ends a block that words begin, or lists what may be nested. */
const entersOddly =
  /^(?:[.?:&|+*/<>=%^~-]|(?:end|fi|done|esac|elif|elsif|then|do|in|when|rescue|case|default)\b|\d+[.)]\s)/
/** After these the next line may be indented by anything. */
const leavesOddly =
  /(?:[+*/%&|^?:<>~\\.-]|\b(?:then|do|else|begin|try|finally|in|of|is|not|and|or|extends|implements))$/
/** Code that is no longer used stands at the margin as often as in its place. */
const unusedCode = /^(?:\/\/+|#)(?!!? \S|$)/
/** Heads that one line without brackets may follow. */
const head = /^\}?\s*(?:else\s+)?(?:if|for|while|switch|with|catch|unless|until)\b.*\)$/
/** Heads of blocks that a word ends. */
const wordBlock = /^(?:def|class|module|begin)\b.*[^{]$/

/** Reads a line without its indentation. Undefined where it does not say how those after it are indented. */
export function lineStructure(text: string): LineStructure | undefined {
  const code = unusedCode.test(text) ? undefined : withoutStrings(text)
  if (code === undefined || entersOddly.test(code) || wordBlock.test(code)) return undefined
  let depth = 0
  let least = 0
  for (const bracket of code.match(/[()[\]{}]/g) ?? []) {
    depth += /[([{]/.test(bracket) ? 1 : -1
    least = Math.min(least, depth)
  }
  const closes = (/^(?:[)\]}]\s*)+/.exec(code)?.[0] ?? "").replace(/\s/g, "").length
  // What it closes later was opened on a line that is not known.
  if (-least > closes) return undefined
  const opens = depth - least
  if (opens > 0) return { closes, opens, goesOn: false }
  const goesOn = /(?:^|[^=!<>])=$|=>$/.test(code)
  return !goesOn && (leavesOddly.test(code) || head.test(code)) ? undefined : { closes, opens, goesOn }
}

/** True for a head that may be followed by one line without brackets. Its own may stand in the line already. */
export function isOpenHead(text: string): boolean {
  return head.test(withoutStrings(text) ?? "")
}

/** The line without its comment and with empty strings. Undefined where one of these does not end in it. */
function withoutStrings(text: string): string | undefined {
  const bare = text
    .replace(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`/g, '""')
    .replace(
      /(?<=[(=,:[!&|?{};]\s*|^|\breturn\s)\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\[])+\/[a-z]*/g,
      '""',
    )
    .replace(/\/\*.*?\*\//g, " ")
    .replace(/\/\/.*$|(?:^|\s)#\s.*$/, "")
    .trim()
  return /["'`]/.test(bare.replaceAll('""', "")) || bare.includes("/*") ? undefined : bare
}
