import { splitFrontMatter } from "../util/front-matter.ts"
import { claudeAgent, commandFields } from "./claude-markdown.ts"
import { ConfigError, type Place, type Problem } from "./errors.ts"
import { looseFields } from "./loose-fields.ts"
import { isMarkdownName, type MarkdownPlace, markdownPlace } from "./markdown-place.ts"
import { type ConfigEntry, entryOf, filterEntries, type ObjectNode } from "./node.ts"
import { placeFinder } from "./place.ts"
import { parseYaml } from "./yaml.ts"

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
