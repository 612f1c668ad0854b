import { isAlias, isMap, isScalar, isSeq, type Node, type Pair, parseDocument } from "yaml"
import { looseFields, splitFrontMatter } from "../util/front-matter.ts"
import { claudeAgent, commandFields } from "./claude.ts"
import { ConfigError, type Position, type Problem, positionFinder } from "./errors.ts"
import { isMarkdownName, type MarkdownDefinition, markdownDefinition } from "./markdown-files.ts"
import {
  type ConfigEntry,
  type ConfigNode,
  entryOf,
  filterEntries,
  maxDepth,
  type ObjectNode,
} from "./node.ts"
import { opencodeAgent } from "./opencode.ts"

/** A Markdown file as a config with one agent or command. */
export interface ParsedMarkdown {
  tree: ObjectNode
  /** Notes about fields and values that Tackle does not use. */
  notes: Problem[]
}

/**
 * Parses a Markdown agent or command into the equivalent config: `{agent: {name: {…, prompt}}}` or `{command: {name:
 * {…, template}}}`. A `name` field takes precedence over the path. Returns undefined if the path is not that of an
 * agent or command. Throws {@link ConfigError} if the file is invalid.
 */
export function parseMarkdown(path: string, text: string): ParsedMarkdown | undefined {
  const found = markdownDefinition(path)
  if (!found) return undefined
  const position = positionFinder(text, path)
  const split = splitFrontMatter(text)
  if (!split && found.dialect === "tackle" && /^\uFEFF?---[ \t]*\r?\n/.test(text)) {
    throw new ConfigError([
      { position: position(0), text: "the front matter is not closed: add a second line with ---." },
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
    // Other programs accept `description: Use it: like this`. This is invalid YAML, but existing files contain such
    // lines.
    const loose = dialect === "tackle" ? undefined : looseTree(yaml, position)
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
    const what = given ? "the name" : `the file's name "${byPath}"`
    throw new ConfigError([
      {
        position,
        text: `${what} must have at most 128 characters and consist of words separated by "/" or ":". Each word must start with a letter or digit and contain only letters, digits, ".", "_" and "-".`,
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
  return { tree: dialect === "opencode" ? opencodeAgent(fields) : fields, notes: [] }
}

function withBody(
  tree: ObjectNode,
  { holds }: MarkdownDefinition,
  { body, position }: { body: string; position: Position },
): ObjectNode {
  // An agent file without a body does not change the agent's prompt.
  if (holds === "agent" && body === "") return tree
  const entry: ConfigEntry = {
    key: holds === "agent" ? "prompt" : "template",
    position,
    value: { kind: "scalar", position, value: body },
  }
  return { ...tree, entries: [...tree.entries, entry] }
}

/**
 * Parses a YAML map of fields. Empty text has no fields. `position` converts offsets to positions. Rejects aliases,
 * because they can expand short text enormously, and text with more than {@link maxDepth} levels. Throws {@link
 * ConfigError} with the position of the first error.
 */
function parseYaml(text: string, position: (offset: number) => Position): ObjectNode {
  const failure = (offset: number, text: string) => new ConfigError([{ position: position(offset), text }])
  const tooDeep = (offset: number) =>
    failure(offset, `the fields are nested too deeply: at most ${maxDepth} levels are supported.`)

  function toNode(node: Node | null | undefined, at: Position, depth = 0): ConfigNode {
    if (!node) return { kind: "scalar", position: at, value: null }
    if (depth > maxDepth) throw tooDeep(node.range?.[0] ?? 0)
    const here = node.range ? position(node.range[0]) : at
    if (isMap<Node, Node | null>(node)) {
      const entries = node.items.map((pair) => toEntry(pair, here, depth + 1))
      return { kind: "object", position: here, entries }
    }
    if (isSeq<Node>(node)) {
      const items = node.items.map((item) => toNode(item, here, depth + 1))
      return { kind: "array", position: here, items }
    }
    if (isAlias(node)) throw failure(node.range?.[0] ?? 0, "aliases (*name) are not supported.")
    return { kind: "scalar", position: here, value: isScalar(node) ? plain(node.value) : null }
  }

  function toEntry({ key, value }: Pair<Node, Node | null>, at: Position, depth: number): ConfigEntry {
    const where = key.range ? position(key.range[0]) : at
    if (!isScalar(key)) throw failure(key.range?.[0] ?? 0, "a key must be a word.")
    return { key: String(key.value), position: where, value: toNode(value, where, depth) }
  }

  try {
    const document = parseDocument<Node>(text, { prettyErrors: false })
    // The parser is recursive. It reports a full stack as an error of the text.
    const exhausted = document.errors.find(({ code }) => code === "RESOURCE_EXHAUSTION")
    if (exhausted) throw tooDeep(exhausted.pos[0])
    const [first] = document.errors
    if (first) throw failure(first.pos[0], `invalid YAML: ${first.message}.`)
    const tree = toNode(document.contents, position(0))
    if (tree.kind === "object") return tree
    if (tree.kind === "scalar" && tree.value === null) {
      return { kind: "object", position: position(0), entries: [] }
    }
    throw failure(0, "expected fields such as `description: …` between the --- lines.")
  } catch (error) {
    if (error instanceof RangeError) throw tooDeep(0)
    throw error
  }
}

function plain(value: unknown): string | number | boolean | null {
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return value
  return value === null || value === undefined ? null : String(value)
}

/** Returns the fields of front matter that is not valid YAML. See {@link looseFields}. */
function looseTree(text: string, position: (offset: number) => Position): ObjectNode | undefined {
  const entries = looseFields(text)?.map(({ key, value, offset }): ConfigEntry => {
    const at = position(offset)
    return { key, position: at, value: { kind: "scalar", position: at, value } }
  })
  return entries && { kind: "object", position: position(0), entries }
}
