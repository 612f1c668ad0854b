/** JSON with object keys sorted at every depth: two equal values give one text. Values JSON has no form for vanish. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(sorted(value)) ?? "null"
}

/** `JSON.parse` as a value: a bad text is an outcome, not an exception. */
export function parseJson(text: string): { ok: true; value: unknown } | { ok: false; error: string } {
  try {
    return { ok: true, value: JSON.parse(text) }
  } catch (error) {
    return { ok: false, error: error instanceof Error ? error.message : String(error) }
  }
}

/** True for what JSON calls an object: neither null nor an array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

/**
 * A record as it comes back from JSON, key by key. A value that JSON refuses, such as a circle or a BigInt, becomes a
 * note of the reason; one that it has no form for is left out.
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
  // A null prototype, so that a key named `__proto__` stays a key.
  const copy: Record<string, unknown> = Object.create(null)
  for (const key of Object.keys(value).sort()) copy[key] = sorted(value[key])
  return copy
}
