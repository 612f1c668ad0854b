import { statSync } from "node:fs"
import { extname, join, posix } from "node:path"
import { newTurn, type Step } from "../call/context.ts"
import { runCalls } from "../call/schedule.ts"
import type { Refusal } from "../event/events.ts"
import { walk } from "../files/walk.ts"
import { readResourceID, resourceServers } from "../mcp/client/resources.ts"
import type { PromptFile } from "../schema/input.ts"
import type { ToolStateCompleted, ToolStateError } from "../schema/tool-state.ts"
import { isDirectory, isFile } from "../util/file-system.ts"
import { newId } from "../util/id.ts"
import { isInside, resolvePath } from "../util/paths.ts"
import { nearNames } from "../util/similarity.ts"

/** A target that the user mentions with `@` in a prompt. */
export type Mention =
  | { kind: "file" | "directory"; name: string; path: string }
  | { kind: "resource"; name: string; server: string; uri: string }
  | { kind: "agent"; name: string }

/**
 * Maximum number of mentions in a prompt, because a user who pastes a log with many names does not want to attach every
 * file.
 */
const maxMentions = 20

/**
 * Finds the mentions in a prompt: `@path` and `@"path with spaces"` of existing files and directories in the worktree,
 * `@name` of an agent, and `@server:uri` of a resource on a known server. Paths are relative to the directory and take
 * precedence over agents with the same name. Trailing punctuation and, except in a `uri`, a line number (`:12`) are
 * ignored. Any other word with an `@`, such as an email address, is not a mention.
 */
export function findMentions(text: string, place: MentionPlace): Mention[] {
  const found = new Map<string, Mention>()
  for (const { names } of mentionWords(text)) {
    const known = knownOf(names, place)
    if (!known) continue
    found.set("path" in known ? known.path : `@${known.name}`, known)
    if (found.size === maxMentions) break
  }
  return [...found.values()]
}

/** The files, agents and servers that a mention can refer to. */
export interface MentionPlace {
  directory: string
  worktree: string
  agents: readonly string[]
  servers: readonly string[]
}

/** Returns the words that start with `@` but do not refer to anything, without the `@` and surrounding punctuation. */
function unknownMentions(text: string, place: MentionPlace): string[] {
  const unknown = mentionWords(text).filter(({ names }) => knownOf(names, place) === undefined)
  return [...new Set(unknown.map(({ names }) => names.at(-1) ?? ""))]
}

/** Returns the possible names for each word that starts with `@`, longest first. */
function mentionWords(text: string): { names: string[] }[] {
  return [...text.matchAll(mention)].map(([, quoted, word = ""]) => ({
    names: quoted === undefined ? readings(word) : [quoted],
  }))
}

/** Matches `@` at the start, after white space, or after an opening bracket, a quote or one of `,;:`. */
const mention = /(?<=^|[\s([{"'`,;:])@(?:"([^"\n]+)"|([^\s"`<>|]+))/g

function knownOf(names: readonly string[], place: MentionPlace): Mention | undefined {
  return (
    firstOf(names, (name) => findPath(name, place) ?? findAgent(name, place.agents)) ??
    findResource(names, place.servers)
  )
}

/**
 * Returns the possible readings of a word. Removes trailing punctuation one character at a time, and returns each
 * result with and without its line number.
 */
function readings(word: string): string[] {
  const names: string[] = []
  for (let name = word; name !== ""; name = name.slice(0, -1)) {
    names.push(name, name.replace(/:\d+(?:-\d+)?$/, ""))
    if (!/[.,;:!?)\]}'*_]$/.test(name)) break
  }
  return names
}

function findPath(name: string, { directory, worktree }: { directory: string; worktree: string }) {
  // "@..." does not refer to a directory; "@./" does.
  if (/^\.+$/.test(name)) return undefined
  const path = resolvePath(name, directory)
  if (!isInside(path, worktree)) return undefined
  const kind = kindOf(path)
  return kind && ({ kind, name, path } as const)
}

function findAgent(name: string, agents: readonly string[]): Mention | undefined {
  return agents.includes(name) ? { kind: "agent", name } : undefined
}

/**
 * Returns the resource that a word refers to. Ignores trailing punctuation, but not a line number. Does not check
 * whether the resource exists, because only its server knows.
 */
function findResource(
  [word = "", ...others]: readonly string[],
  servers: readonly string[],
): Mention | undefined {
  const name = others.length === 0 ? word : word.replace(/[.,;:!?)\]}'*_]+$/, "")
  const server = servers.find((id) => name.startsWith(`${id}:`))
  if (server === undefined) return undefined
  const uri = name.slice(server.length + 1)
  return /^[a-z][a-z0-9+.-]*:./i.test(uri) ? { kind: "resource", name, server, uri } : undefined
}

function kindOf(path: string): "file" | "directory" | undefined {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    if (found?.isDirectory()) return "directory"
    return found?.isFile() ? "file" : undefined
  } catch {
    // The name is too long, or a link refers to itself.
    return undefined
  }
}

function firstOf<T>(names: readonly string[], find: (name: string) => T | undefined): T | undefined {
  for (const name of names) {
    const found = find(name)
    if (found !== undefined) return found
  }
  return undefined
}

/** A word with `@` that looks like a path but does not refer to a file or directory in the worktree. */
export interface MissingMention {
  name: string
  /** Whether the file or directory exists but is outside the worktree. In this case, it is not attached. */
  outside: boolean
  /** Paths that the user may have meant, relative to the directory, most likely first. */
  near: string[]
}

/** Maximum number of project paths to compare with a mention. */
const maxPaths = 5000

/** Maximum number of suggestions. */
const maxNear = 3

/**
 * Finds words with `@` that look like paths but do not refer to a file or directory in the worktree. A word looks like
 * a path if it starts with `./`, `../` or `~/`, if its first directory exists, if it has a file extension that occurs
 * in the project (`.ts`), if it resembles a project path, or if it refers to a file or directory outside the worktree.
 * This excludes most email addresses, decorators, package names (`@scope/name`) and user names.
 */
export async function missingMentions(
  text: string,
  place: MentionPlace,
  signal: AbortSignal,
): Promise<MissingMention[]> {
  const { directory, worktree } = place
  const words = unknownMentions(text, place).filter(mayBePath)
  if (words.length === 0) return []
  const paths = await pathsBelow(directory, signal)
  const endings = new Set(paths.map(extname).filter((ending) => /^\.[a-z]\w*$/i.test(ending)))
  return words.flatMap((name): MissingMention[] => {
    const path = resolvePath(name, directory)
    if (!isInside(path, worktree) && (isFile(path) || isDirectory(path)))
      return [{ name, outside: true, near: [] }]
    const near = pathsLike(name, paths)
    const [first = ""] = name.split("/")
    const meant =
      /^(?:\.\.?|~)\//.test(name) ||
      (name.includes("/") && isDirectory(join(directory, first))) ||
      (endings.has(extname(name)) && !isPackage(name)) ||
      near.length > 0
    return meant ? [{ name, outside: false, near }] : []
  })
}

/**
 * Returns true for a word that contains a slash or a dot, but no characters that are typical of addresses, versions or
 * function calls.
 */
function mayBePath(word: string): boolean {
  return /[/.]/.test(word) && !/[@:()=?&#\\]/.test(word) && !/^[/.]*$/.test(word)
}

/** Returns true if `@` and this text can be the name of a scoped package, or of a module in one. */
function isPackage(name: string): boolean {
  return /^[a-z\d][\w.~-]*\/[\w.~/-]+$/.test(name)
}

async function pathsBelow(directory: string, signal: AbortSignal): Promise<string[]> {
  const paths: string[] = []
  for await (const { path } of walk(directory, { signal, onUnreadable: () => {} })) {
    paths.push(path)
    if (paths.length === maxPaths) break
  }
  return paths
}

/** Returns paths with a similar spelling, and files with the same name in other directories. */
function pathsLike(name: string, paths: readonly string[]): string[] {
  const wanted = posix.normalize(name).replace(/\/$/, "")
  const base = posix.basename(wanted)
  const elsewhere = extname(base) === "" ? [] : paths.filter((path) => posix.basename(path) === base)
  const spelt = nearNames(wanted, paths, Math.min(3, Math.ceil(wanted.length / 6)))
  return [...new Set([...spelt, ...elsewhere])].slice(0, maxNear)
}

/** Files and notes that mentions add to a prompt. */
export interface MentionedFiles {
  files: PromptFile[]
  /** Notes for the model: why attachments failed, and which subagents the user mentions. */
  notes: string[]
  refused: Refusal[]
}

/** A file, directory or resource that a prompt mentions. `name` is the text that the user wrote. */
export type Attached = Exclude<Mention, { kind: "agent" }>

/**
 * Reads the files, directories and resources that the user mentions with `@`, using the session's tools and rules. Each
 * read requires permission, like any tool call. A failed or refused read becomes a note. `agents` are the subagents
 * that this session may start.
 */
export async function attachMentions(
  text: string,
  { active, messageID, offered }: Pick<Step, "active" | "messageID" | "offered">,
  agents: readonly string[],
): Promise<MentionedFiles> {
  const { directory, worktree } = active.run.session
  const servers = resourceServers(offered.get(readResourceID)?.schema)
  const mentions = text.includes("@") ? findMentions(text, { directory, worktree, agents, servers }) : []
  const result: MentionedFiles = { files: [], notes: [], refused: [] }
  const attached = mentions.filter((mention) => mention.kind !== "agent")
  for (const { kind, name } of mentions) {
    if (kind !== "agent") continue
    result.notes.push(
      `The user mentions the subagent ${name} (@${name}). Use the task tool to delegate the related work to this subagent.`,
    )
  }
  if (attached.length === 0) return result

  const turn = newTurn()
  const calls = attached.map((entry) => {
    const { tool, input } = callFor(entry)
    return { callID: newId("call"), tool, raw: JSON.stringify(input) }
  })
  const outcomes = await runCalls(calls, {
    active,
    messageID,
    offered,
    turn,
    extra: attachedByUser,
    report: async () => {},
  })
  attached.forEach((entry, index) => {
    const state = outcomes[index]?.state
    if (state) add(entry, attachedFiles(entry, state))
  })
  return { ...result, refused: turn.refused }

  function add({ name }: Attached, found: ReturnType<typeof attachedFiles>): void {
    if ("files" in found) result.files.push(...found.files)
    else result.notes.push(`@${name} was not attached: ${found.problem}`)
  }
}

/** Value of `extra` for calls that read what the user mentions. */
export const attachedByUser = { bypassCwdCheck: true } as const

/** Returns the tool call that reads an attachment. The tool's checks and limits apply. */
export function callFor(attached: Attached): { tool: string; input: Record<string, unknown> } {
  if (attached.kind === "resource")
    return { tool: readResourceID, input: { server: attached.server, uri: attached.uri } }
  const { kind, path } = attached
  return kind === "directory"
    ? { tool: "list", input: { path } }
    : { tool: "read", input: { filePath: path } }
}

/** Returns the prompt files from the result of the call that reads an attachment, or the error if the call failed. */
export function attachedFiles(
  attached: Attached,
  state: ToolStateCompleted | ToolStateError,
): { files: PromptFile[] } | { problem: string } {
  if (state.status === "error") return { problem: state.error }
  const { kind, name } = attached
  if (state.attachments?.length) {
    return { files: state.attachments.map(({ mime, url, filename = name }) => ({ mime, url, filename })) }
  }
  const text =
    kind === "directory" ? `<directory path="${attached.path}">\n${state.output}\n</directory>` : state.output
  const url = `data:text/plain;base64,${Buffer.from(text).toString("base64")}`
  return { files: [{ mime: "text/plain", url, filename: name }] }
}
