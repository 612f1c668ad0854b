import type { Position } from "./errors.ts"

/** A node of a parsed config file. Values are in file order and have positions. Nodes are immutable. */
export type ConfigNode = ObjectNode | ArrayNode | ScalarNode

/** An object, `{…}`. It may contain a key more than once. See {@link withoutRepeats}. */
export interface ObjectNode {
  kind: "object"
  position: Position
  entries: readonly ConfigEntry[]
}

/** An entry of an object. `position` is the position of the key. */
export interface ConfigEntry {
  key: string
  position: Position
  value: ConfigNode
}

/** A list, `[…]`. */
export interface ArrayNode {
  kind: "array"
  position: Position
  items: readonly ConfigNode[]
}

/** A string, number, boolean or null. */
export interface ScalarNode {
  kind: "scalar"
  position: Position
  value: string | number | boolean | null
}

/** Maximum depth of nested objects and lists. The functions that read the tree are recursive. */
export const maxDepth = 500

/** Keys and indexes from the root to a value. */
export type Path = readonly (string | number)[]

/** Returns the entry with the key. If the key is repeated, the last entry applies. */
export function entryOf(node: ConfigNode | undefined, key: string): ConfigEntry | undefined {
  return node?.kind === "object" ? node.entries.findLast((entry) => entry.key === key) : undefined
}

/** Returns the node at the path, or undefined. */
export function nodeAt(tree: ConfigNode | undefined, path: Path): ConfigNode | undefined {
  let node = tree
  for (const step of path)
    node = node?.kind === "array" ? node.items[Number(step)] : entryOf(node, String(step))?.value
  return node
}

/** Returns the position of the deepest part of `path` that exists: a key or a list item. */
export function positionOf(tree: ConfigNode, path: Path): Position {
  let node = tree
  let position = tree.position
  for (const step of path) {
    const entry = entryOf(node, String(step))
    const next = node.kind === "array" ? node.items[Number(step)] : entry?.value
    if (next === undefined) break
    position = entry?.position ?? next.position
    node = next
  }
  return position
}

/**
 * Converts a node to plain values. The objects have no prototype, so that a key such as `constructor` has no special
 * meaning.
 */
export function toPlain(node: ConfigNode): unknown {
  if (node.kind === "scalar") return node.value
  if (node.kind === "array") return node.items.map(toPlain)
  const plain: Record<string, unknown> = Object.create(null)
  for (const { key, value } of node.entries) plain[key] = toPlain(value)
  return plain
}

/**
 * Converts plain values to a node whose parts all have the same position. Omits undefined values. A value that JSON does
 * not have, such as a function, becomes null.
 */
export function fromPlain(value: unknown, position: Position, depth = 0): ConfigNode {
  if (depth > maxDepth) return { kind: "scalar", position, value: null }
  if (Array.isArray(value))
    return { kind: "array", position, items: value.map((item) => fromPlain(item, position, depth + 1)) }
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).flatMap(([key, field]: [string, unknown]) =>
      field === undefined ? [] : [{ key, position, value: fromPlain(field, position, depth + 1) }],
    )
    return { kind: "object", position, entries }
  }
  const isScalar = typeof value === "string" || typeof value === "number" || typeof value === "boolean"
  return { kind: "scalar", position, value: isScalar ? value : null }
}

/** Returns a copy without the node at `path`, if it exists. */
export function without<T extends ConfigNode>(node: T, path: Path): T
export function without(node: ConfigNode, path: Path): ConfigNode {
  const [step, ...rest] = path
  if (step === undefined || node.kind === "scalar") return node
  if (node.kind === "array") {
    const items =
      rest.length === 0
        ? node.items.filter((_, index) => index !== step)
        : node.items.map((item, index) => (index === step ? without(item, rest) : item))
    return { ...node, items }
  }
  return filterEntries(node, (entry) => {
    if (entry.key !== step) return entry
    return rest.length === 0 ? undefined : { ...entry, value: without(entry.value, rest) }
  })
}

/** Replaces each entry with the result of `change`. If the result is `undefined`, removes the entry. */
export function filterEntries(
  node: ObjectNode,
  change: (entry: ConfigEntry) => ConfigEntry | undefined,
): ObjectNode {
  return { ...node, entries: node.entries.map(change).filter((entry) => entry !== undefined) }
}

/** Removes repeated keys at every depth. Keeps the last value of each key, as `JSON.parse` does. */
export function withoutRepeats<T extends ConfigNode>(node: T): T
export function withoutRepeats(node: ConfigNode): ConfigNode {
  if (node.kind === "scalar") return node
  if (node.kind === "array") return { ...node, items: node.items.map((item) => withoutRepeats(item)) }
  const last = new Map(node.entries.map((entry) => [entry.key, entry]))
  return {
    ...node,
    entries: [...last.values()].map((entry) => ({ ...entry, value: withoutRepeats(entry.value) })),
  }
}

/** Merges objects by key and joins some lists. Any other value of `over` replaces the value in `under`. */
export function mergeNodes(under: ObjectNode, over: ObjectNode): ObjectNode {
  const merged = new Map(under.entries.map((entry) => [entry.key, entry]))
  for (const entry of over.entries) {
    const before = merged.get(entry.key)
    merged.set(
      entry.key,
      before ? { ...entry, value: mergeValues(entry.key, before.value, entry.value) } : entry,
    )
  }
  return { ...over, entries: [...merged.values()] }
}

/**
 * Lists that are joined instead of replaced. Instructions accumulate, and a project cannot unmask the user's secrets.
 */
const joinedLists: ReadonlySet<string> = new Set(["instructions", "secrets"])

function mergeValues(key: string, under: ConfigNode, over: ConfigNode): ConfigNode {
  if (under.kind === "object" && over.kind === "object") return mergeNodes(under, over)
  if (joinedLists.has(key) && under.kind === "array" && over.kind === "array") {
    return { ...over, items: [...under.items, ...over.items] }
  }
  return over
}
