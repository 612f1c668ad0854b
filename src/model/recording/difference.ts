import { isRecord } from "../../util/json.ts"

/** The first difference between two values. A side is `undefined` if its value is missing. */
interface Difference {
  /** Path such as `messages[3].content`. Empty for the whole value. */
  path: string
  expected: unknown
  got: unknown
}

/**
 * Returns the first difference between two JSON values, in the order of the expected keys. Ids that Tackle creates
 * differ in each run, so ids with the same prefix count as equal.
 */
export function firstDifference(expected: unknown, got: unknown, path = ""): Difference | undefined {
  if (Array.isArray(expected) && Array.isArray(got)) {
    const length = Math.max(expected.length, got.length)
    for (let index = 0; index < length; index += 1) {
      const inner = firstDifference(expected[index], got[index], `${path}[${index}]`)
      if (inner) return inner
    }
    return undefined
  }
  if (isRecord(expected) && isRecord(got)) {
    for (const key of new Set([...Object.keys(expected), ...Object.keys(got)])) {
      const inner = firstDifference(expected[key], got[key], path === "" ? key : `${path}.${key}`)
      if (inner) return inner
    }
    return undefined
  }
  return comparable(expected) === comparable(got) ? undefined : { path, expected, got }
}

/** Describes a difference on one line, with excerpts of both values. */
export function describeDifference({ path, expected, got }: Difference): string {
  const [shownExpected, shownGot] =
    typeof expected === "string" && typeof got === "string"
      ? excerpts(expected, got)
      : [shown(expected), shown(got)]
  return `${path === "" ? "the body" : path}: expected ${shownExpected}, got ${shownGot}`
}

const ownIds = /\b(ses|msg|prt|per|que|call|job)_[0-9a-z]{22}\b/g

function comparable(value: unknown): unknown {
  return typeof value === "string" ? value.replaceAll(ownIds, "$1_…") : value
}

/** Maximum number of characters in an excerpt, and the number of characters before the difference. */
const excerptLength = 120
const before = 30

function excerpts(expected: string, got: string): [string, string] {
  let at = 0
  while (at < expected.length && expected[at] === got[at]) at += 1
  const start = at <= before * 2 ? 0 : at - before
  const cut = (text: string) => {
    const end = start + excerptLength
    return `${start > 0 ? "…" : ""}${JSON.stringify(text.slice(start, end))}${end < text.length ? "…" : ""}`
  }
  return [cut(expected), cut(got)]
}

function shown(value: unknown): string {
  if (value === undefined) return "nothing"
  const text = JSON.stringify(value)
  return text.length > excerptLength ? `${text.slice(0, excerptLength)}…` : text
}
