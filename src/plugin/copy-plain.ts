import { isRecord } from "../util/json.ts"

/** Maximum nesting depth. No real config or message is nested this deeply. */
const maxDepth = 100

/**
 * Copies arrays and plain objects. Other values, such as functions in a provider's options, are kept unchanged. Throws
 * `TypeError` if the data is circular or nested too deeply.
 */
export function copyPlain<T>(value: T, depth = 0): T {
  if (depth > maxDepth) throw new TypeError("it is circular or nested too deeply")
  if (Array.isArray(value)) return value.map((entry: unknown) => copyPlain(entry, depth + 1)) as T
  if (!isRecord(value)) return value
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [key, copyPlain(entry, depth + 1)]),
  ) as T
}
