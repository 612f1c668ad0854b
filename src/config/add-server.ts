import { randomBytes } from "node:crypto"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { dirname, extname, join } from "node:path"
import type { Edit, Node } from "jsonc-parser"
import type { McpConfig } from "../mcp/client/config.ts"
import { errorMessage, TackleError, UsageError } from "../util/errors.ts"
import { ownConfigFiles } from "./config-files.ts"
import { ConfigError } from "./errors.ts"
import { parseJsonc } from "./jsonc.ts"
import type { Location } from "./location.ts"
import { entryOf } from "./node.ts"

/**
 * Writes an MCP server into a config file of the project or the user and returns the file's path. Uses the first file
 * that exists, or creates one. Keeps comments and layout. Throws `UsageError` if the server already exists or the file
 * is TOML, `ConfigError` if the file is malformed, `TackleError` if the file cannot be written, and the system error if
 * the file cannot be read.
 */
export async function addServer(
  location: Location,
  scope: "project" | "user",
  [id, server]: [string, McpConfig[string]],
): Promise<string> {
  const candidates = ownConfigFiles(location, scope)
  const [first = ""] = candidates
  const path = candidates.find((candidate) => existsSync(candidate)) ?? first
  if (extname(path) === ".toml") {
    const { stringify } = await import("smol-toml")
    const table = stringify({ mcp: { [id]: server } })
    throw new UsageError(
      `${path} is a TOML file, which Tackle does not edit. Add these lines:\n${table.trimEnd()}`,
    )
  }
  const text = existsSync(path) ? readFileSync(path, "utf8") : ""
  const changed = await withServer(text, path, [id, server])
  try {
    mkdirSync(dirname(path), { recursive: true })
    replaceFile(existsSync(path) ? realpathSync(path) : path, changed)
  } catch (error) {
    throw new TackleError(
      `${path} cannot be written (${errorMessage(error)}). Check the permissions of its directory and the free disk space.`,
      {
        code: "config.write",
        recoverable: false,
        cause: error,
      },
    )
  }
  return path
}

async function withServer(
  text: string,
  path: string,
  [id, server]: [string, McpConfig[string]],
): Promise<string> {
  const tree = await parseJsonc(text, path)
  const servers = entryOf(tree, "mcp")
  if (entryOf(servers?.value, id))
    throw new UsageError(
      `${path} already contains an MCP server "${id}". Edit it there, or choose another id.`,
    )
  if (servers && servers.value.kind !== "object")
    throw new ConfigError([
      { position: servers.position, text: "mcp: expected an object ({…}). Fix the mcp entry first." },
    ])
  return servers
    ? await insertProperty(text, ["mcp"], { key: id, value: server })
    : await insertProperty(text, [], { key: "mcp", value: { [id]: server } })
}

/** Replaces the file atomically and keeps its mode. */
function replaceFile(path: string, text: string): void {
  const temporary = join(dirname(path), `.${randomBytes(6).toString("hex")}.tmp`)
  try {
    writeFileSync(temporary, text, { flag: "wx" })
    if (existsSync(path)) chmodSync(temporary, statSync(path).mode & 0o777)
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

/**
 * Adds a property at the end of the object at `path`, which must exist. Keeps comments and layout. `text` must parse
 * without errors. Text without a value is treated as `{}`.
 */
export async function insertProperty(
  text: string,
  path: readonly string[],
  { key, value }: { key: string; value: unknown },
): Promise<string> {
  const jsonc = await import("jsonc-parser")
  const layout = layoutOf(text)
  const options = { allowTrailingComma: true, allowEmptyContent: true }
  const root = jsonc.parseTree(blankMark(text), [], options)
  if (root === undefined)
    return insertProperty(`${withLineEnd(text, layout)}{}${layout.eol}`, path, { key, value })
  const object = jsonc.findNodeAtLocation(root, [...path])
  if (object?.type !== "object") throw new TypeError(`No object at ${path.join(".")}`)

  const close = object.offset + object.length - 1
  const last = object.children?.at(-1)
  const comma = last && commaAfter(jsonc.createScanner(text, true), endOf(last))
  // Inserts the property after the last comment of the object, on its own line.
  const at = text.slice(0, close).trimEnd().length
  const isOnOneLine = !text.slice(at, close).includes("\n")
  const around = lineIndent(text, object.offset)
  const indent =
    last && startsItsLine(text, last.offset) ? lineIndent(text, last.offset) : around + layout.unit
  const written = `${JSON.stringify(key)}: ${valueText(value, indent, layout)}`
  const edits: Edit[] = [
    ...(last && comma === false ? [{ offset: endOf(last), length: 0, content: "," }] : []),
    {
      offset: at,
      length: isOnOneLine ? close - at : 0,
      content: `${layout.eol}${indent}${written}${comma ? "," : ""}${isOnOneLine ? layout.eol + around : ""}`,
    },
  ]
  return jsonc.applyEdits(text, edits)
}

interface Layout {
  eol: string
  /** Indentation of one level. */
  unit: string
}

function layoutOf(text: string): Layout {
  const [unit = "  "] = /(?<=^)[\t ]+(?=["}/])/m.exec(text) ?? []
  return { eol: text.includes("\r\n") ? "\r\n" : "\n", unit }
}

/** Replaces a byte order mark with a space, so that offsets stay the same. */
function blankMark(text: string): string {
  return text.replace(/^\uFEFF/, " ")
}

function withLineEnd(text: string, { eol }: Layout): string {
  return text === "" || text === "\uFEFF" || text.endsWith("\n") ? text : text + eol
}

function endOf({ offset, length }: Node): number {
  return offset + length
}

/** Returns true if a comma follows, ignoring white space and comments. */
function commaAfter(
  scanner: { setPosition(offset: number): void; scan(): number; getTokenOffset(): number },
  offset: number,
): boolean {
  scanner.setPosition(offset)
  return scanner.scan() === commaToken
}

/** Value of `SyntaxKind.CommaToken`, which the package exports only as a type. */
const commaToken = 5

function startsItsLine(text: string, offset: number): boolean {
  return text.slice(lineStart(text, offset), offset).trim() === ""
}

function lineIndent(text: string, offset: number): string {
  return /^[\t ]*/.exec(text.slice(lineStart(text, offset)).replace(/^\uFEFF/, ""))?.[0] ?? ""
}

function lineStart(text: string, offset: number): number {
  return text.lastIndexOf("\n", offset - 1) + 1
}

/** Formats an object on several lines and a list on one line. */
function valueText(value: unknown, indent: string, layout: Layout): string {
  if (Array.isArray(value)) return `[${value.map((item) => valueText(item, indent, layout)).join(", ")}]`
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  const inside = indent + layout.unit
  const lines = Object.entries(value).map(
    ([key, entry]) => `${layout.eol}${inside}${JSON.stringify(key)}: ${valueText(entry, inside, layout)}`,
  )
  return lines.length === 0 ? "{}" : `{${lines.join(",")}${layout.eol}${indent}}`
}
