import { isAlias, isMap, isScalar, isSeq, type Node, type Pair, parseDocument } from "yaml"
import { ConfigError, type Place } from "./errors.ts"
import type { ConfigEntry, ConfigNode, ObjectNode } from "./node.ts"

/**
 * Reads YAML that is a list of fields; an empty text has none. `place` tells where an offset of the text stands.
 * Throws {@link ConfigError} with the place of the first fault. Aliases are refused: they let a short text become a long
 * one.
 */
export function parseYaml(text: string, place: (offset: number) => Place): ObjectNode {
  const fault = (offset: number, told: string) => new ConfigError([{ place: place(offset), text: told }])

  function toNode(node: Node | null | undefined, at: Place): ConfigNode {
    if (!node) return { kind: "scalar", place: at, value: null }
    const here = node.range ? place(node.range[0]) : at
    if (isMap<Node, Node | null>(node)) {
      return { kind: "object", place: here, entries: node.items.map((pair) => toEntry(pair, here)) }
    }
    if (isSeq<Node>(node)) {
      return { kind: "array", place: here, items: node.items.map((item) => toNode(item, here)) }
    }
    if (isAlias(node)) throw fault(node.range?.[0] ?? 0, "an alias (*name) cannot be used here.")
    return { kind: "scalar", place: here, value: isScalar(node) ? plain(node.value) : null }
  }

  function toEntry({ key, value }: Pair<Node, Node | null>, at: Place): ConfigEntry {
    const where = key.range ? place(key.range[0]) : at
    if (!isScalar(key)) throw fault(key.range?.[0] ?? 0, "a key has to be a word.")
    return { key: String(key.value), place: where, value: toNode(value, where) }
  }

  try {
    const document = parseDocument<Node>(text, { prettyErrors: false })
    const [first] = document.errors
    if (first) throw fault(first.pos[0], `this is no YAML: ${first.message}.`)
    const tree = toNode(document.contents, place(0))
    if (tree.kind === "object") return tree
    if (tree.kind === "scalar" && tree.value === null) {
      return { kind: "object", place: place(0), entries: [] }
    }
    throw fault(0, "what stands between the lines of --- has to be fields, such as `description: …`.")
  } catch (error) {
    // The parser calls itself for each level: a hostile file must not end the process.
    if (error instanceof RangeError) throw fault(0, "the fields are nested too deeply.")
    throw error
  }
}

function plain(value: unknown): string | number | boolean | null {
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return value
  return value === null || value === undefined ? null : String(value)
}
