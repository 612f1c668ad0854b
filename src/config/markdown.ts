import { isAlias, isMap, isScalar, isSeq, type Node, type Pair, parseDocument } from "yaml"
import { splitFrontMatter } from "../util/front-matter.ts"
import { claudeAgent, commandFields } from "./claude.ts"
import { ConfigError, type Place, type Problem, placeFinder } from "./errors.ts"
import { isMarkdownName, type MarkdownPlace, markdownPlace } from "./markdown-files.ts"
import { type ConfigEntry, type ConfigNode, entryOf, filterEntries, type ObjectNode } from "./node.ts"

/** A Markdown file as a config: its agent or command and nothing else. */
export interface ParsedMarkdown {
  tree: ObjectNode
  /** What another program's file says that has no meaning here. */
  notes: Problem[]
}

/**
 * Reads an agent or command in Markdown as the config that says the same: `{agent: {name: {…, prompt}}}` or
 * `{command: {name: {…, template}}}`. A `name` in the fields goes before that of the path. Undefined for a path that holds
 * neither. Throws {@link ConfigError}.
 */
export function parseMarkdown(path: string, text: string): ParsedMarkdown | undefined {
  const found = markdownPlace(path)
  if (!found) return undefined
  const place = placeFinder(text, path)
  const split = splitFrontMatter(text)
  if (!split && found.dialect === "tackle" && /^\uFEFF?---[ \t]*\r?\n/.test(text)) {
    throw new ConfigError([
      { place: place(0), text: "the fields have no end: a second line of --- is missing." },
    ])
  }
  const bodyPlace = place(split ? split.start : 0)
  const fields = split
    ? readFields(split.yaml, (offset) => place(split.start + offset), found)
    : { kind: "object" as const, place: place(0), entries: [] }
  const body = split ? split.body : text.replace(/^\uFEFF/, "").trim()
  const named = takeName(fields, found)
  const translated = translate(named.fields, found)
  const value = withBody(translated.tree, found, { body, place: bodyPlace })
  const entry = { key: named.name, place: named.place, value }
  const all = { kind: "object" as const, place: place(0), entries: [entry] }
  return {
    tree: { ...all, entries: [{ key: found.holds, place: place(0), value: all }] },
    notes: translated.notes,
  }
}

function readFields(yaml: string, place: (offset: number) => Place, { dialect }: MarkdownPlace): ObjectNode {
  try {
    return parseYaml(yaml, place)
  } catch (error) {
    // Other programs take `description: Use it: like this`, which is no YAML, and people have such files.
    const loose = dialect === "tackle" ? undefined : looseFields(yaml, place)
    if (loose && error instanceof ConfigError) return loose
    throw error
  }
}

function takeName(
  fields: ObjectNode,
  { name: byPath }: MarkdownPlace,
): { name: string; place: Place; fields: ObjectNode } {
  const given = entryOf(fields, "name")
  const name = given?.value.kind === "scalar" ? given.value.value : given ? undefined : byPath
  const place = given?.place ?? fields.place
  if (typeof name !== "string" || !isMarkdownName(name)) {
    const what = given ? "name: it" : `the file's name "${byPath}"`
    throw new ConfigError([
      {
        place,
        text: `${what} must be letters, digits, ".", "_" and "-", with "/" or ":" between such words.`,
      },
    ])
  }
  return { name, place, fields: filterEntries(fields, (entry) => (entry.key === "name" ? undefined : entry)) }
}

function translate(fields: ObjectNode, { holds, dialect }: MarkdownPlace): ParsedMarkdown {
  if (holds === "command") return commandFields(fields, { foreign: dialect !== "tackle" })
  if (dialect === "claude") return claudeAgent(fields)
  return { tree: dialect === "opencode" ? withSteps(fields) : fields, notes: [] }
}

/** The older name of OpenCode's for the limit of steps. */
function withSteps(fields: ObjectNode): ObjectNode {
  return filterEntries(fields, (entry) => (entry.key === "maxSteps" ? { ...entry, key: "steps" } : entry))
}

function withBody(
  tree: ObjectNode,
  { holds }: MarkdownPlace,
  { body, place }: { body: string; place: Place },
): ObjectNode {
  // An agent without a text of its own keeps the prompt it has; a command without one says nothing.
  if (holds === "agent" && body === "") return tree
  const entry: ConfigEntry = {
    key: holds === "agent" ? "prompt" : "template",
    place,
    value: { kind: "scalar", place, value: body },
  }
  return { ...tree, entries: [...tree.entries, entry] }
}

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

/**
 * Reads `key: value` lines where the value is whatever follows the first colon, as other programs do with front matter
 * that is no YAML. Undefined where a line is anything else: what is nested cannot be read so.
 */
export function looseFields(text: string, place: (offset: number) => Place): ObjectNode | undefined {
  const entries: ConfigEntry[] = []
  let offset = 0
  for (const line of text.split("\n")) {
    const start = offset
    offset += line.length + 1
    if (/^\s*(?:#.*)?$/.test(line)) continue
    const [, key, value] = /^([\w-]+):[ \t]*(.*?)\s*$/.exec(line) ?? []
    if (key === undefined || value === undefined) return undefined
    const at = place(start)
    entries.push({ key, place: at, value: { kind: "scalar", place: at, value: readValue(value) } })
  }
  return { kind: "object", place: place(0), entries }
}

function readValue(text: string): string | number | boolean {
  if (text === "true" || text === "false") return text === "true"
  if (/^-?\d+(?:\.\d+)?$/.test(text)) return Number(text)
  return /^(["']).*\1$/.test(text) ? text.slice(1, -1) : text
}
