import { visible } from "./visible.ts"

/** What was asked for. */
interface Asked {
  permission: string
  patterns: readonly string[]
}

/** So many rules are named, and patterns up to so many characters: a longer one is for a person to shorten. */
const maxRules = 3
const maxPattern = 60

/**
 * For a person where nobody could be asked: the flags that would have allowed it, as they are typed in a shell. Undefined
 * where nothing was asked, or nothing of it is short enough.
 */
export function allowHint(asked: readonly Asked[]): string | undefined {
  const rules = asked.flatMap(({ permission, patterns }) =>
    patterns.filter(isShort).map((pattern) => `--allow ${quoted(`${permission}:${pattern}`)}`),
  )
  const flags = [...new Set(rules)].slice(0, maxRules)
  return flags.length === 0 ? undefined : `nobody could be asked; this would allow it: ${flags.join(" ")}`
}

function isShort(pattern: string): boolean {
  return pattern.length <= maxPattern && visible(pattern) === pattern && !pattern.includes("\n")
}

/** As one word of a shell's line. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
