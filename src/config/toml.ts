import { errorMessage } from "../util/errors.ts"
import { ConfigError, type Place } from "./errors.ts"
import type { ConfigEntry, ConfigNode, ObjectNode, Path } from "./node.ts"
import { placeFinder } from "./place.ts"
import { type KeyOffsets, keyOffsets, pathKey } from "./toml-keys.ts"

/**
 * Reads TOML into the tree that JSON gives too. The library knows neither places nor the order of keys such as `"1"`;
 * both come from a scan of the text. Throws {@link ConfigError} with the place of the fault.
 */
export async function parseToml(source: string, file: string): Promise<ObjectNode> {
  const { parse, TomlError } = await import("smol-toml")
  const text = source.replace(/^\uFEFF/, "")
  const place = placeFinder(text, file)
  try {
    const values = parse(text)
    const offsets = keyOffsets(text, (key) => keyParts(parse(`${key} = 0`)))
    return { kind: "object", place: place(0), entries: toEntries(values, [], 0, { offsets, place }) }
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    // The rest of the library's message shows the lines around, which may hold a secret.
    const [message = ""] = errorMessage(error).split("\n")
    const at: Place = { file, line: error.line, column: error.column }
    throw new ConfigError([{ place: at, text: `${message.replace(/^Invalid TOML document: /, "")}.` }])
  }
}

/** The parts of a dotted key, from the tables that the key alone makes. */
function keyParts(table: object): string[] {
  const [entry] = Object.entries(table)
  if (entry === undefined) return []
  const [key, value]: [string, unknown] = entry
  return typeof value === "object" && value !== null ? [key, ...keyParts(value)] : [key]
}

interface Scan {
  offsets: KeyOffsets
  place: (offset: number) => Place
}

/** `near` is the offset of the nearest key around, for what has none of its own. */
function toNode(value: unknown, path: Path, near: number, scan: Scan): ConfigNode {
  const place = scan.place(near)
  if (Array.isArray(value)) {
    const items = value.map((item, index) => toNode(item, [...path, index], near, scan))
    return { kind: "array", place, items }
  }
  if (value instanceof Date) return { kind: "scalar", place, value: value.toISOString() }
  if (typeof value === "object" && value !== null) {
    return { kind: "object", place, entries: toEntries(value, path, near, scan) }
  }
  const known = typeof value === "string" || typeof value === "number" || typeof value === "boolean"
  return { kind: "scalar", place, value: known ? value : null }
}

function toEntries(table: object, path: Path, near: number, scan: Scan): ConfigEntry[] {
  return Object.entries(table)
    .map(([key, value]) => ({ key, value, offset: scan.offsets.get(pathKey([...path, key])) ?? near }))
    .sort((a, b) => a.offset - b.offset)
    .map(({ key, value, offset }) => ({
      key,
      place: scan.place(offset),
      value: toNode(value, [...path, key], offset, scan),
    }))
}
