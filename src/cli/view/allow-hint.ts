import { visible } from "./visible.ts"

/** Permission that was requested, with its patterns. */
interface Asked {
  permission: string
  patterns: readonly string[]
}

/** Limits of the hint: number of rules, and characters of a pattern. */
const maxRules = 3
const maxPattern = 60

/**
 * Returns the shell flags that would have allowed the requests. Returns undefined if nothing was requested or no
 * pattern is short enough.
 */
export function allowHint(asked: readonly Asked[]): string | undefined {
  const rules = asked.flatMap(({ permission, patterns }) =>
    patterns.filter(isShort).map((pattern) => `--allow ${quoted(`${permission}:${pattern}`)}`),
  )
  const flags = [...new Set(rules)].slice(0, maxRules)
  return flags.length === 0 ? undefined : `no user could be asked; to allow this, add: ${flags.join(" ")}`
}

function isShort(pattern: string): boolean {
  return pattern.length <= maxPattern && visible(pattern) === pattern && !pattern.includes("\n")
}

/** Quotes text as one shell word. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
