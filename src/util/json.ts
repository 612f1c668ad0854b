/**
 * Returns JSON with sorted keys at every depth, so that equal values produce equal strings. Omits values without a JSON
 * form.
 */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(sorted(value)) ?? "null"
}

/** Parses JSON without throwing. */
export function parseJson(text: string): { ok: true; value: unknown } | { ok: false; error: string } {
  try {
    return { ok: true, value: JSON.parse(text) }
  } catch (error) {
    return { ok: false, error: error instanceof Error ? error.message : String(error) }
  }
}

/** Maximum depth of values from a model. Deeper values would overflow the stack of recursive code. */
export const maxDepth = 200

/** Returns true if the value is nested more than {@link maxDepth} levels deep. */
export function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; depth <= maxDepth; depth++) {
    level = level.flatMap((item) => (typeof item === "object" && item !== null ? Object.values(item) : []))
    if (level.length === 0) return false
  }
  return true
}

/** Returns true for an object that is not an array. Returns false for null. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

/**
 * Converts a record to plain JSON values. Replaces a value that JSON rejects, such as a cycle or a BigInt, with a
 * string that contains the reason. Omits values without a JSON form.
 */
export function plainRecord(record: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const plain: Record<string, unknown> = {}
  for (const key of Object.keys(record)) {
    try {
      const text = JSON.stringify(record[key])
      if (text !== undefined) plain[key] = JSON.parse(text)
    } catch (error) {
      plain[key] = `[not JSON: ${error instanceof Error ? error.message.split("\n", 1)[0] : String(error)}]`
    }
  }
  return plain
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isRecord(value)) return value
  // A null prototype keeps a key named `__proto__`.
  const copy: Record<string, unknown> = Object.create(null)
  for (const key of Object.keys(value).sort()) copy[key] = sorted(value[key])
  return copy
}

/**
 * Returns the value of the record's own property with this key, or undefined if it has none. Ignores inherited
 * properties such as `toString`. Use it for keys from untrusted input.
 */
export function own<T>(record: Readonly<Record<string, T>> | undefined, key: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined
}
