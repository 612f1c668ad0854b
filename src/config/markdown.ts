import { isAlias, isMap, isScalar, isSeq, type Node, type Pair, parseDocument } from "yaml"
import { splitFrontMatter } from "../util/front-matter.ts"
import { claudeAgent, commandFields } from "./claude.ts"
import { ConfigError, type Position, type Problem, positionFinder } from "./errors.ts"
import { isMarkdownName, type MarkdownDefinition, markdownDefinition } from "./markdown-files.ts"
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
  const found = markdownDefinition(path)
  if (!found) return undefined
  const position = positionFinder(text, path)
  const split = splitFrontMatter(text)
  if (!split && found.dialect === "tackle" && /^\uFEFF?---[ \t]*\r?\n/.test(text)) {
    throw new ConfigError([
      { position: position(0), text: "the fields have no end: a second line of --- is missing." },
    ])
  }
  const bodyPosition = position(split ? split.start : 0)
  const fields = split
    ? readFields(split.yaml, (offset) => position(split.start + offset), found)
    : { kind: "object" as const, position: position(0), entries: [] }
  const body = split ? split.body : text.replace(/^\uFEFF/, "").trim()
  const named = takeName(fields, found)
  const translated = translate(named.fields, found)
  const value = withBody(translated.tree, found, { body, position: bodyPosition })
  const entry = { key: named.name, position: named.position, value }
  const all = { kind: "object" as const, position: position(0), entries: [entry] }
  return {
    tree: { ...all, entries: [{ key: found.holds, position: position(0), value: all }] },
    notes: translated.notes,
  }
}

function readFields(
  yaml: string,
  position: (offset: number) => Position,
  { dialect }: MarkdownDefinition,
): ObjectNode {
  try {
    return parseYaml(yaml, position)
  } catch (error) {
    // Other programs take `description: Use it: like this`, which is no YAML, and people have such files.
    const loose = dialect === "tackle" ? undefined : looseFields(yaml, position)
    if (loose && error instanceof ConfigError) return loose
    throw error
  }
}

function takeName(
  fields: ObjectNode,
  { name: byPath }: MarkdownDefinition,
): { name: string; position: Position; fields: ObjectNode } {
  const given = entryOf(fields, "name")
  const name = given?.value.kind === "scalar" ? given.value.value : given ? undefined : byPath
  const position = given?.position ?? fields.position
  if (typeof name !== "string" || !isMarkdownName(name)) {
    const what = given ? "name: it" : `the file's name "${byPath}"`
    throw new ConfigError([
      {
        position,
        text: `${what} must be letters, digits, ".", "_" and "-", with "/" or ":" between such words.`,
      },
    ])
  }
  return {
    name,
    position,
    fields: filterEntries(fields, (entry) => (entry.key === "name" ? undefined : entry)),
  }
}

function translate(fields: ObjectNode, { holds, dialect }: MarkdownDefinition): ParsedMarkdown {
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
  { holds }: MarkdownDefinition,
  { body, position }: { body: string; position: Position },
): ObjectNode {
  // An agent without a text of its own keeps the prompt it has; a command without one says nothing.
  if (holds === "agent" && body === "") return tree
  const entry: ConfigEntry = {
    key: holds === "agent" ? "prompt" : "template",
    position,
    value: { kind: "scalar", position, value: body },
  }
  return { ...tree, entries: [...tree.entries, entry] }
}

/**
 * Reads YAML that is a list of fields; an empty text has none. `position` tells where an offset of the text stands.
 * Throws {@link ConfigError} with the position of the first fault. Aliases are refused: they let a short text become a long
 * one.
 */
export function parseYaml(text: string, position: (offset: number) => Position): ObjectNode {
  const fault = (offset: number, told: string) =>
    new ConfigError([{ position: position(offset), text: told }])

  function toNode(node: Node | null | undefined, at: Position): ConfigNode {
    if (!node) return { kind: "scalar", position: at, value: null }
    const here = node.range ? position(node.range[0]) : at
    if (isMap<Node, Node | null>(node)) {
      return { kind: "object", position: here, entries: node.items.map((pair) => toEntry(pair, here)) }
    }
    if (isSeq<Node>(node)) {
      return { kind: "array", position: here, items: node.items.map((item) => toNode(item, here)) }
    }
    if (isAlias(node)) throw fault(node.range?.[0] ?? 0, "an alias (*name) cannot be used here.")
    return { kind: "scalar", position: here, value: isScalar(node) ? plain(node.value) : null }
  }

  function toEntry({ key, value }: Pair<Node, Node | null>, at: Position): ConfigEntry {
    const where = key.range ? position(key.range[0]) : at
    if (!isScalar(key)) throw fault(key.range?.[0] ?? 0, "a key has to be a word.")
    return { key: String(key.value), position: where, value: toNode(value, where) }
  }

  try {
    const document = parseDocument<Node>(text, { prettyErrors: false })
    const [first] = document.errors
    if (first) throw fault(first.pos[0], `this is no YAML: ${first.message}.`)
    const tree = toNode(document.contents, position(0))
    if (tree.kind === "object") return tree
    if (tree.kind === "scalar" && tree.value === null) {
      return { kind: "object", position: position(0), entries: [] }
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
export function looseFields(text: string, position: (offset: number) => Position): ObjectNode | undefined {
  const entries: ConfigEntry[] = []
  let offset = 0
  for (const line of text.split("\n")) {
    const start = offset
    offset += line.length + 1
    if (/^\s*(?:#.*)?$/.test(line)) continue
    const [, key, value] = /^([\w-]+):[ \t]*(.*?)\s*$/.exec(line) ?? []
    if (key === undefined || value === undefined) return undefined
    const at = position(start)
    entries.push({ key, position: at, value: { kind: "scalar", position: at, value: readValue(value) } })
  }
  return { kind: "object", position: position(0), entries }
}

function readValue(text: string): string | number | boolean {
  if (text === "true" || text === "false") return text === "true"
  if (/^-?\d+(?:\.\d+)?$/.test(text)) return Number(text)
  return /^(["']).*\1$/.test(text) ? text.slice(1, -1) : text
}
