import { isRecord } from "../util/json.ts"

/** Deeper than any config or message goes. */
const maxDepth = 100

/**
 * A copy of plain data. What is neither an array nor a plain object stays what it is, also a function: options of a
 * provider's package may be one. Throws `TypeError` for what contains itself.
 */
export function copyPlain<T>(value: T, depth = 0): T {
  if (depth > maxDepth) throw new TypeError("it contains itself, or is nested too deep")
  if (Array.isArray(value)) return value.map((entry: unknown) => copyPlain(entry, depth + 1)) as T
  if (!isRecord(value)) return value
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [key, copyPlain(entry, depth + 1)]),
  ) as T
}
