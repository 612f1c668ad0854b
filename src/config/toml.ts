import { errorMessage } from "../util/errors.ts"
import { ConfigError, type Position, positionFinder } from "./errors.ts"
import type { ConfigEntry, ConfigNode, ObjectNode, Path } from "./node.ts"

/**
 * Parses TOML into the same kind of tree as JSON. Scans the text for positions and for the order of keys such as `"1"`,
 * which the library does not provide. If the text is invalid, throws {@link ConfigError} with the position of the
 * error.
 */
export async function parseToml(source: string, file: string): Promise<ObjectNode> {
  const { parse, TomlError } = await import("smol-toml")
  const text = source.replace(/^\uFEFF/, "")
  const position = positionFinder(text, file)
  try {
    const values = parse(text)
    const offsets = keyOffsets(text, (key) => keyParts(parse(`${key} = 0`)))
    return { kind: "object", position: position(0), entries: toEntries(values, [], 0, { offsets, position }) }
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    // The remaining lines of the library's message quote the file, which may contain a secret.
    const [message = ""] = errorMessage(error).split("\n")
    const at: Position = { file, line: error.line, column: error.column }
    throw new ConfigError([{ position: at, text: `${message.replace(/^Invalid TOML document: /, "")}.` }])
  }
}

/** Returns the parts of a dotted key from the tables that the key creates. */
function keyParts(table: object): string[] {
  const [entry] = Object.entries(table)
  if (entry === undefined) return []
  const [key, value]: [string, unknown] = entry
  return typeof value === "object" && value !== null ? [key, ...keyParts(value)] : [key]
}

interface Scan {
  offsets: KeyOffsets
  position: (offset: number) => Position
}

/**
 * Converts a value to a node. `near` is the offset of the nearest enclosing key, for values whose own offset is
 * unknown.
 */
function toNode(value: unknown, path: Path, near: number, scan: Scan): ConfigNode {
  const position = scan.position(near)
  if (Array.isArray(value)) {
    const items = value.map((item, index) => toNode(item, [...path, index], near, scan))
    return { kind: "array", position, items }
  }
  if (value instanceof Date) return { kind: "scalar", position, value: value.toISOString() }
  if (typeof value === "object" && value !== null) {
    return { kind: "object", position, entries: toEntries(value, path, near, scan) }
  }
  const known = typeof value === "string" || typeof value === "number" || typeof value === "boolean"
  return { kind: "scalar", position, value: known ? value : null }
}

function toEntries(table: object, path: Path, near: number, scan: Scan): ConfigEntry[] {
  return Object.entries(table)
    .map(([key, value]) => ({ key, value, offset: scan.offsets.get(pathKey([...path, key])) ?? near }))
    .sort((a, b) => a.offset - b.offset)
    .map(({ key, value, offset }) => ({
      key,
      position: scan.position(offset),
      value: toNode(value, [...path, key], offset, scan),
    }))
}

/** The offset of the first occurrence of each key in a TOML text, by {@link pathKey}. */
export type KeyOffsets = ReadonlyMap<string, number>

/** Returns a unique string for a path. Keys may contain any characters. */
function pathKey(path: Path): string {
  return JSON.stringify(path)
}

/**
 * Finds the keys of a valid TOML text. `parts` splits a dotted key (`a."b.c"`) into names. Invalid text results in
 * wrong offsets, but never in an endless loop.
 */
function keyOffsets(text: string, parts: (key: string) => string[]): KeyOffsets {
  const offsets = new Map<string, number>()
  /** Number of tables found so far in each array of tables. */
  const counts = new Map<string, number>()
  let position = 0

  function skip(pattern: RegExp): string {
    pattern.lastIndex = position
    const [found = ""] = pattern.exec(text) ?? []
    position += found.length
    return found
  }

  function step(base: Path, name: string, offset: number): Path {
    const path = [...base, name]
    const id = pathKey(path)
    if (!offsets.has(id)) offsets.set(id, offset)
    return path
  }

  function header(): Path {
    const isArray = text.startsWith("[[", position)
    position += isArray ? 2 : 1
    skip(blank)
    const start = position
    const names = parts(skip(keyText))
    skip(/[\]\s]*/y)
    let path: Path = []
    for (const [index, name] of names.entries()) {
      path = step(path, name, start)
      const id = pathKey(path)
      if (isArray && index === names.length - 1) counts.set(id, (counts.get(id) ?? 0) + 1)
      const count = counts.get(id)
      if (count !== undefined) path = [...path, count - 1]
    }
    return path
  }

  function pair(base: Path): void {
    const start = position
    let path = base
    for (const name of parts(skip(keyText))) path = step(path, name, start)
    skip(/[ \t]*=[ \t]*/y)
    value(path)
  }

  function value(path: Path): void {
    const first = text[position]
    if (first === "{") list("}", () => pair(path))
    else if (first === "[") list("]", (index) => value([...path, index]))
    else if (skip(longString) === "" && skip(shortString) === "") skip(bareValue)
  }

  function list(close: string, item: (index: number) => void): void {
    position += 1
    for (let index = 0; position < text.length; index++) {
      skip(blank)
      if (text[position] === close) break
      const before = position
      item(index)
      skip(blank)
      skip(/,/y)
      if (position === before) position += 1
    }
    position += 1
  }

  let table: Path = []
  for (skip(blank); position < text.length; skip(blank)) {
    const before = position
    if (text[position] === "[") table = header()
    else pair(table)
    if (position === before) position += 1
  }
  return offsets
}

/** Matches white space, line breaks and comments. */
const blank = /(?:\s|#[^\n]*)*/y
/** Matches a key up to `=`, `]` or the end of the line. Quoted parts may contain any character. */
const keyText = /(?:"(?:\\.|[^"\\\n])*"|'[^'\n]*'|[^=\]\n"'])+/y
/** Matches a multi-line string. One or two quotes may precede the closing three. */
const longString = /"""(?:\\[\s\S]|[^\\])*?"""(?:"{1,2})?|'''[\s\S]*?'''(?:'{1,2})?/y
const shortString = /"(?:\\.|[^"\\\n])*"|'[^'\n]*'/y
const bareValue = /[^,\]}#\n]*/y
