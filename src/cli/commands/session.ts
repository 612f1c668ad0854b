import { readFile } from "node:fs/promises"
import { text as readStdin } from "node:stream/consumers"
import type { Command } from "commander"
import type { PruneChoice } from "../../engine/housekeeping.ts"
import type { Tackle } from "../../engine/tackle.ts"
import type { MessageWithParts } from "../../schema/message.ts"
import type { Session, SessionMatch } from "../../schema/session.ts"
import { sumUsage } from "../../session/budget.ts"
import { historyPages } from "../../session/history.ts"
import { canUndo, NothingToUndoError } from "../../session/undo.ts"
import { fileReason, UsageError } from "../../util/errors.ts"
import { parseJson } from "../../util/json.ts"
import { displayPath } from "../../util/paths.ts"
import { localMinute } from "../../util/time.ts"
import { counted } from "../../util/words.ts"
import { usageWords } from "../../view/usage.ts"
import { folded, oneLine, visible } from "../../view/visible.ts"
import { printHint, printJson, printLine, writePieces } from "../process/stdout.ts"
import { callLine } from "../view/call.ts"
import { loadMarkdown, type RenderMarkdown } from "../view/markdown.ts"
import { style } from "../view/style.ts"
import { withStore, withTackle } from "../workspace/engine.ts"
import { type FormatFlags, openWorkspace, type WorkspaceFlags } from "../workspace/workspace.ts"
import { duration, formatFlag, jsonFlag, locationFlags, positive, projectFlags } from "./flags.ts"
import { noSession } from "./run.ts"

/** Defines `tackle session` and its subcommands. */
export function defineSession(session: Command): void {
  const lastSession = "session id (default: latest session in this project)"
  locationFlags(session.command("list"))
    .description("list the most recently used sessions in this project")
    .option("--all", "include sessions in all projects")
    .option("--search <text>", "list only the sessions that contain all these words")
    .option("--limit <n>", "maximum number of sessions", positive, 100)
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(listSessions)
  locationFlags(session.command("show"))
    .description("show the messages and calls of a session")
    .argument("[id]", lastSession)
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(showSession)
  locationFlags(session.command("export"))
    .description("print a complete session as JSON")
    .argument("[id]", lastSession)
    .option("--sanitize", "omit texts, file contents, commands and paths")
    .action(exportSession)
  projectFlags(session.command("import"))
    .description("import an exported session into this project")
    .argument("<file>", 'file to import; "-" reads stdin')
    .option("--copy", "use new ids, to import a session that already exists")
    .action(importSession)
  locationFlags(session.command("fork"))
    .description("create a session with the history of another session")
    .argument("[id]", lastSession)
    .option("--at <message>", "copy only up to the end of this message's turn")
    .action(forkSession)
  projectFlags(session.command("compact"))
    .description("replace old messages with a summary for the model")
    .argument("[id]", lastSession)
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(compactSession)
  for (const direction of ["undo", "redo"] as const) {
    locationFlags(session.command(direction))
      .description(
        direction === "undo"
          ? "undo the file changes of the latest turn that changed files"
          : "redo the file changes of the most recently undone turn",
      )
      .argument("[id]", lastSession)
      .option("--others", "if some files have changed since, restore only the other files")
      .option(
        "--skip",
        `leave all files of the turn unchanged; the next ${direction} continues with the turn ${direction === "undo" ? "before" : "after"} it`,
      )
      .addOption(formatFlag())
      .addOption(jsonFlag())
      .action((id: string | undefined, flags: SessionUndoFlags) => undoSession(direction, id, flags))
  }
  locationFlags(session.command("prune"))
    .description("delete old sessions with all their data")
    .option(
      "--older-than <time>",
      "delete sessions that have not been used for this long, such as 30d, 12h or 6w",
      duration,
    )
    .option("--keep <number>", "keep the newest N sessions per project", positive)
    .option("--all", "include sessions in all projects")
    .option("--dry-run", "list the sessions without deleting them")
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(pruneSessions)
  locationFlags(session.command("delete"))
    .description("delete sessions with all their data")
    .argument("<id...>", "session ids")
    .action(deleteSessions)
}

/**
 * Flags for `tackle session list`. `all` includes sessions in all projects. `search` selects the sessions that contain
 * all its words. `limit` is the maximum number of sessions.
 */
export interface SessionListFlags extends FormatFlags {
  all?: boolean
  search?: string
  limit: number
}

/** Flags for `tackle session export`. `sanitize` omits texts, file contents, commands and paths. */
export interface SessionExportFlags extends WorkspaceFlags {
  sanitize?: boolean
}

/** Flags for `tackle session import`. `copy` assigns new ids, so that a session that already exists can be imported. */
export interface SessionImportFlags extends WorkspaceFlags {
  copy?: boolean
}

/**
 * Flags for `tackle session fork`. `at` is the id of a message. The copy ends with this message's turn. Default: the
 * whole history.
 */
export interface SessionForkFlags extends WorkspaceFlags {
  at?: string
}

/** Runs `tackle session list`. */
export async function listSessions(flags: SessionListFlags): Promise<void> {
  await withStore(flags, async (tackle) => {
    const { all: everywhere = false, search, limit } = flags
    // One more than the limit shows whether more sessions exist.
    const found = await tackle.sessions.list({ everywhere, search, limit: limit + 1 })
    const sessions = found.slice(0, limit)
    if (flags.format === "json") return printJson({ sessions })
    if (sessions.length === 0)
      return printLine(search?.trim() ? "No session contains all of these words." : "No sessions yet.")
    for (const session of sessions) {
      const directory = flags.all ? ` [${session.directory}]` : ""
      const title = `${session.replayed ? "(replay) " : ""}${session.title || "(no prompt yet)"}`
      const room = process.stdout.isTTY ? process.stdout.columns - 46 : Number.POSITIVE_INFINITY
      printLine(
        `${session.id}  ${localMinute(session.time.updated)}  ${oneLine(`${title}${directory}`, room)}`,
      )
      if (session.match?.messageID !== undefined) printLine(`  ${highlighted(session.match)}`)
    }
    if (found.length > limit)
      printLine(`This list is limited to the newest ${counted(limit, "session")}. Use --limit to list more.`)
  })
}

/** Returns an excerpt with the matching words in bold. */
function highlighted({ excerpt, marks, role }: SessionMatch): string {
  let shown = role === "user" ? "> " : ""
  let last = 0
  for (const [start, end] of marks) {
    shown += visible(excerpt.slice(last, start)) + style.bold(visible(excerpt.slice(start, end)))
    last = end
  }
  return shown + visible(excerpt.slice(last))
}

/** Runs `tackle session show [id]`. */
export async function showSession(id: string | undefined, flags: FormatFlags): Promise<void> {
  await withStore(flags, async (tackle) => {
    const sessionID = await namedOrLast(tackle, id)
    const handle = await tackle.sessions.get(sessionID)
    if (!handle) throw noSession(sessionID)
    const pages = historyPages((page) => handle.messages(page))
    if (flags.format === "json") return writePieces(shownPieces(handle.info(), pages))
    printLine(describeSession(handle.info()))
    const render = process.stdout.isTTY ? await loadMarkdown() : undefined
    for await (const page of pages)
      for (const message of page) printMessage(message, { worktree: tackle.worktree, render })
    const { usage } = await tackle.sessions.stats({ session: handle.id })
    const words = usageWords(usage)
    if (words.length > 0) printLine(style.dim(`total: ${words.join(" · ")}`))
  })
}

/**
 * Runs `tackle session export [id]`, which prints a session and its subagents' sessions, with their messages and to-do
 * lists, for `session import` and bug reports.
 */
export async function exportSession(id: string | undefined, flags: SessionExportFlags): Promise<void> {
  const write = async (tackle: Tackle) => {
    const { archiveText } = await archives()
    const sessionID = await namedOrLast(tackle, id)
    const archive = await archiveText(tackle.store, sessionID, { sanitize: flags.sanitize ?? false })
    if (!archive) throw noSession(sessionID)
    await writePieces(archive)
  }
  await withStore(flags, write, openWorkspace)
}

/** Runs `tackle session import <file>`. `-` reads stdin. */
export async function importSession(file: string, flags: SessionImportFlags): Promise<void> {
  await withTackle(await openWorkspace(flags), async (tackle) => {
    const archive = await readArchive(file)
    const session = await tackle.sessions.import(archive, { copy: flags.copy ?? false }).catch(naming(file))
    printHint(`Imported as ${session.id}. To continue it: tackle run -s ${session.id} "…"`)
  })
}

/** Runs `tackle session fork [id]`. */
export async function forkSession(id: string | undefined, flags: SessionForkFlags): Promise<void> {
  await withStore(flags, async (tackle) => {
    const from = await namedOrLast(tackle, id)
    const fork = await tackle.sessions.fork(from, flags.at === undefined ? {} : { at: flags.at })
    if (!fork) throw noSession(from)
    printHint(`Forked ${from} as ${fork.id}. To continue the fork: tackle run -s ${fork.id} "…"`)
  })
}

/** Runs `tackle session delete <id...>`. Deletes all known sessions, then throws `UsageError` if an id is unknown. */
export async function deleteSessions(ids: readonly string[], flags: WorkspaceFlags): Promise<void> {
  await withStore(flags, async (tackle) => {
    const missing: string[] = []
    for (const id of ids) {
      if (await tackle.sessions.delete(id)) printLine(`Deleted ${id}.`)
      else missing.push(id)
    }
    if (missing.length > 0) throw noSession(...missing)
  })
}

/**
 * Returns the given id or, without one, the id of the project's latest session. Throws `UsageError` if the project has
 * no sessions.
 */
export async function namedOrLast(tackle: Tackle, id: string | undefined): Promise<string> {
  const found = id ?? (await tackle.sessions.latest())?.id
  if (found === undefined) throw new UsageError("This project has no sessions yet.")
  return found
}

/** Returns a function that adds the file name to an error about an archive and throws the error. */
function naming(file: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof UsageError)) throw error
    throw new UsageError(`${file === "-" ? "stdin" : file}: ${error.message}`, error)
  }
}

async function readArchive(file: string): Promise<unknown> {
  const name = file === "-" ? "stdin" : file
  const parsed = parseJson(await readInput(file))
  if (parsed.ok) return parsed.value
  throw new UsageError(`${name} is not an export from \`tackle session export\`: ${parsed.error}.`)
}

async function readInput(file: string): Promise<string> {
  try {
    return await (file === "-" ? readStdin(process.stdin) : readFile(file, "utf8"))
  } catch (error) {
    throw new UsageError(`Cannot read ${file}: ${fileReason(error)}.`, error)
  }
}

function describeSession({ id, title, agent, directory, model }: Session): string {
  const asked = model ? ` · ${model.providerID}/${model.modelID}` : ""
  return `${prose(`${id} · ${agent}${asked} · ${directory}\n${title}`)}\n`
}

/** Formats text with a mark before each line. Wraps the lines in a terminal. */
function prose(text: string, mark = ""): string {
  const whole = visible(text)
  const { isTTY, columns } = process.stdout
  const lines = isTTY ? folded(whole, (columns || 80) - mark.length) : whole
  return mark + lines.replaceAll("\n", `\n${mark}`)
}

async function* shownPieces(session: Session, pages: AsyncIterable<readonly MessageWithParts[]>) {
  yield `{"session":${JSON.stringify(session)},"messages":[`
  yield* (await archives()).listPieces(pages)
  yield "]}\n"
}

function printMessage(
  { message, parts }: MessageWithParts,
  { worktree, render }: { worktree: string; render: RenderMarkdown | undefined },
): void {
  const fromUser = message.role === "user"
  const answer = (text: string) => render?.(text, process.stdout.columns || 80).join("\n") ?? visible(text)
  for (const part of parts) {
    if (part.type === "text") printLine(`${fromUser ? prose(part.text, "> ") : answer(part.text)}\n`)
    if (part.type === "file") printLine(`> [file ${part.filename ?? part.mime}]`)
    if (part.type === "tool")
      for (const line of callLine(part, worktree, process.stdout.columns || 100)) printLine(line)
  }
  const used = message.role === "assistant" ? usageWords(sumUsage([message])) : []
  if (used.length > 0) printLine(style.dim(`  ${used.join(" · ")}`))
  if (message.role === "assistant" && message.error) printLine(prose(`✗ ${message.error.message}`))
}

/** Loads the archive module on demand, because most commands do not use it. */
function archives() {
  return import("../../session/transfer-session.ts")
}

/** Runs `tackle session compact [id]`. */
export async function compactSession(id: string | undefined, flags: FormatFlags): Promise<void> {
  await withTackle(await openWorkspace(flags), async (tackle) => {
    const sessionID = await namedOrLast(tackle, id)
    const result = await tackle.sessions.compact(sessionID)
    if (!result) throw noSession(sessionID)
    if (flags.format === "json") return printJson({ sessionID, ...result })
    const { before, after, pruned, summarized } = result
    if (pruned === 0 && !summarized)
      return printLine(
        `Nothing to compact in ${sessionID}, because a summary would not be shorter than the current ${before} characters.`,
      )
    const outputs = pruned === 0 ? "" : `, with ${counted(pruned, "old tool output")} moved to files`
    printLine(
      `Compacted ${sessionID}: the model now reads ${after} characters instead of ${before}${outputs}.`,
    )
  })
}

/** Flags for `tackle session prune`. If both limits are set, only sessions that exceed both are deleted. */
export interface SessionPruneFlags extends FormatFlags {
  /** Minimum time in ms since the last use. */
  olderThan?: number
  keep?: number
  all?: boolean
  dryRun?: boolean
}

/** Runs `tackle session prune`. */
export async function pruneSessions(flags: SessionPruneFlags): Promise<void> {
  const { dryRun = false, all: everywhere = false } = flags
  if (flags.olderThan === undefined && flags.keep === undefined)
    throw new UsageError("Select the sessions to delete with --older-than 30d, --keep 20, or both.")
  const choice: PruneChoice = {
    olderThanMs: flags.olderThan,
    keep: flags.keep,
  }
  await withStore(flags, async (tackle) => {
    const { deleted, held } = await tackle.sessions.prune({ ...choice, everywhere, dryRun })
    if (flags.format === "json") return printJson({ dryRun, deleted, held })
    for (const { id, title, time } of deleted)
      printLine(`${id}  ${localMinute(time.updated)}  ${oneLine(title || "(no prompt yet)", 60)}`)
    for (const { id } of held)
      printLine(`${id} ${dryRun ? "would not be" : "was not"} deleted, because a run is using it.`)
    printLine(`${dryRun ? "Would delete" : "Deleted"} ${counted(deleted.length, "session")}.`)
  })
}

/**
 * Flags for `tackle session undo` and `redo`. `others` skips files that were changed after the turn or its undo.
 * Without `others`, one of these files prevents the whole operation. `skip` leaves all files unchanged.
 */
export interface SessionUndoFlags extends FormatFlags {
  others?: boolean
  skip?: boolean
}

/** Maximum number of sessions that are searched for a turn to undo or redo. */
const maxSearched = 50

/**
 * Returns the newest other session in the project with a turn that can be undone or redone, or undefined if no session
 * has one.
 */
async function otherSession(
  tackle: Tackle,
  { way, than }: { way: "undo" | "redo"; than: string },
): Promise<Session | undefined> {
  const sessions = await tackle.sessions.list({ limit: maxSearched })
  for (const session of sessions.filter(({ id }) => id !== than)) {
    if (way === "redo" && (session.undone ?? []).length > 0) return session
    const handle = way === "undo" ? await tackle.sessions.get(session.id) : undefined
    if (handle && (await canUndo((page) => handle.messages(page)))) return session
  }
  return undefined
}

/** Returns a session's id and title. */
function titleOf({ id, title }: Session): string {
  return `${id} ("${oneLine(title, 60)}")`
}

/** Runs `tackle session undo [id]` or `tackle session redo [id]`. */
export async function undoSession(
  way: "undo" | "redo",
  id: string | undefined,
  flags: SessionUndoFlags,
): Promise<void> {
  await withStore(flags, async (tackle) => {
    const sessionID = await namedOrLast(tackle, id)
    const { others = false, skip = false } = flags
    const result = await tackle.sessions[way](sessionID, { others, skip }).catch(async (error: unknown) => {
      const other = id === undefined ? await otherSession(tackle, { way, than: sessionID }) : undefined
      if (!other || !(error instanceof NothingToUndoError)) throw error
      const command = `tackle session ${way} ${other.id}`
      const what = way === "undo" ? "that changed files" : "with an undone turn"
      throw new UsageError(
        `${error.message} The latest session ${what} is ${titleOf(other)}. Run \`${command}\`.`,
        error,
      )
    })
    if (!result) throw noSession(sessionID)
    if (flags.format === "json") return printJson({ sessionID, ...result })

    const done = `${skip ? "Skipped" : way === "undo" ? "Undid" : "Redid"} the changes of: `
    const room = process.stdout.isTTY ? process.stdout.columns - done.length : 60
    printLine(`${done}${oneLine(result.prompt, room)}`)
    printLine(`  in ${sessionID}`)
    const show = (path: string) => visible(displayPath(path, tackle.worktree))
    for (const { path, kind } of result.files) printLine(`  ${kind} ${show(path)}`)
    if (result.files.length === 0 && !skip) printLine("  No files had to be restored.")
    for (const { path } of result.refused) printLine(`  left unchanged: ${show(path)}`)
    for (const note of result.unseen) printLine(`  not fully tracked: ${visible(note)}`)
    if (skip)
      printLine(`The next ${way} continues with the turn ${way === "undo" ? "before" : "after"} this one.`)
  })
}
