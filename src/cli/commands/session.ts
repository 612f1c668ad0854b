import { readFile } from "node:fs/promises"
import { text as readStdin } from "node:stream/consumers"
import type { Tackle } from "../../engine/tackle.ts"
import type { MessageWithParts } from "../../schema/message.ts"
import type { Session } from "../../schema/session.ts"
import { sumUsage } from "../../session/cost.ts"
import { historyPages } from "../../session/history.ts"
import { fileReason, UsageError } from "../../util/errors.ts"
import { parseJson } from "../../util/json.ts"
import { localMinute } from "../../util/local-time.ts"
import { openTackle } from "../open-tackle.ts"
import { type FormatFlags, openPlace, type PlaceFlags } from "../place.ts"
import { printJson, printLine } from "../print.ts"
import { withRecords } from "../records.ts"
import { writePieces } from "../stdout.ts"
import { callLine } from "../view/call-line.ts"
import { style } from "../view/style.ts"
import { usageWords } from "../view/usage.ts"
import { oneLine, visible } from "../view/visible.ts"
import { foldWords } from "../view/word-fold.ts"

/** `all`: those of every project. */
export interface SessionListFlags extends FormatFlags {
  all?: boolean
}

/** `sanitize`: without what was said, read, written or run, and without paths. */
export interface SessionExportFlags extends PlaceFlags {
  sanitize?: boolean
}

/** `copy`: under new ids, so that one which is there already is no obstacle. */
export interface SessionImportFlags extends PlaceFlags {
  copy?: boolean
}

/** `at`: the id of a message, whose turn is the last one taken over. Default: the whole history. */
export interface SessionForkFlags extends PlaceFlags {
  at?: string
}

/** `tackle session list`. */
export async function listSessions(flags: SessionListFlags): Promise<void> {
  await withRecords(flags, async (tackle) => {
    const sessions = await tackle.sessions.list({ everywhere: flags.all ?? false })
    if (flags.format === "json") return printJson({ sessions })
    if (sessions.length === 0) return printLine("No sessions yet.")
    for (const session of sessions) {
      const place = flags.all ? ` [${session.directory}]` : ""
      const title = `${session.replayed ? "(replay) " : ""}${session.title || "(no prompt yet)"}`
      const room = process.stdout.isTTY ? process.stdout.columns - 46 : Number.POSITIVE_INFINITY
      printLine(`${session.id}  ${localMinute(session.time.updated)}  ${oneLine(`${title}${place}`, room)}`)
    }
  })
}

/** `tackle session show [id]`. */
export async function showSession(id: string | undefined, flags: FormatFlags): Promise<void> {
  await withRecords(flags, async (tackle) => {
    const sessionID = await namedOrLast(tackle, id)
    const handle = await tackle.sessions.get(sessionID)
    if (!handle) throw noSession(sessionID)
    const pages = historyPages((page) => handle.messages(page))
    if (flags.format === "json") return writePieces(shownPieces(handle.info(), pages))
    printLine(describeSession(handle.info()))
    for await (const page of pages) for (const message of page) printMessage(message, tackle.worktree)
    const { usage } = await tackle.sessions.stats({ session: handle.id })
    const words = usageWords(usage)
    if (words.length > 0) printLine(style.dim(`in all: ${words.join(" · ")}`))
  })
}

/** `tackle session export [id]`: everything that is stored, for `session import` and for bug reports. */
export async function exportSession(id: string | undefined, flags: SessionExportFlags): Promise<void> {
  const write = async (tackle: Tackle) => {
    const { archiveText } = await archives()
    const sessionID = await namedOrLast(tackle, id)
    const archive = await archiveText(tackle.store, sessionID, { sanitize: flags.sanitize ?? false })
    if (!archive) throw noSession(sessionID)
    await writePieces(archive)
  }
  await withRecords(flags, write, openPlace)
}

/** `tackle session import <file>`; `-` reads stdin. */
export async function importSession(file: string, flags: SessionImportFlags): Promise<void> {
  await withTackle(flags, async (tackle) => {
    const archive = await readArchive(file)
    const session = await tackle.sessions.import(archive, { copy: flags.copy ?? false }).catch(naming(file))
    printLine(`Imported as ${session.id}. Go on with it: tackle run -s ${session.id} "…"`)
  })
}

/** `tackle session fork [id]`. */
export async function forkSession(id: string | undefined, flags: SessionForkFlags): Promise<void> {
  await withRecords(flags, async (tackle) => {
    const from = await namedOrLast(tackle, id)
    const fork = await tackle.sessions.fork(from, flags.at === undefined ? {} : { at: flags.at })
    if (!fork) throw noSession(from)
    printLine(`Forked ${from} as ${fork.id}. Go on with it: tackle run -s ${fork.id} "…"`)
  })
}

/** `tackle session delete <id...>`. Those that are there are removed even where another is not. */
export async function deleteSessions(ids: readonly string[], flags: PlaceFlags): Promise<void> {
  await withRecords(flags, async (tackle) => {
    const missing: string[] = []
    for (const id of ids) {
      if (await tackle.sessions.delete(id)) printLine(`Deleted ${id}.`)
      else missing.push(id)
    }
    if (missing.length > 0) throw noSession(missing.join(", "))
  })
}

/** Opens the engine of a place for a piece of work, and closes it. */
export async function withTackle(flags: PlaceFlags, work: (tackle: Tackle) => Promise<void>): Promise<void> {
  const tackle = await openTackle(await openPlace(flags), {})
  try {
    await work(tackle)
  } finally {
    await tackle.close()
  }
}

/** The id that was given, or that of the project's last session. Throws `UsageError` where there is none yet. */
export async function namedOrLast(tackle: Tackle, id: string | undefined): Promise<string> {
  const found = id ?? (await tackle.sessions.latest())?.id
  if (found === undefined) throw new UsageError("There is no session of this project yet.")
  return found
}

/** Says of which file an archive's fault is. */
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
  throw new UsageError(`${name} is no session of \`tackle session export\`: ${parsed.error}.`)
}

async function readInput(file: string): Promise<string> {
  try {
    return await (file === "-" ? readStdin(process.stdin) : readFile(file, "utf8"))
  } catch (error) {
    throw new UsageError(`Cannot read ${file}: ${fileReason(error)}.`, error)
  }
}

/** For an id that no session has. */
export function noSession(id: string): UsageError {
  return new UsageError(`There is no session ${id}. \`tackle session list --all\` shows them.`)
}

function describeSession({ id, title, agent, directory, model }: Session): string {
  const asked = model ? ` · ${model.providerID}/${model.modelID}` : ""
  return `${prose(`${id} · ${agent}${asked} · ${directory}\n${title}`)}\n`
}

/** Text that people read, each line behind the mark: as `run` shows it, at a terminal broken between words. */
function prose(text: string, mark = ""): string {
  const whole = visible(text)
  const { isTTY, columns } = process.stdout
  const lines = isTTY ? foldWords(whole, (columns || 80) - mark.length) : whole
  return mark + lines.replaceAll("\n", `\n${mark}`)
}

async function* shownPieces(session: Session, pages: AsyncIterable<readonly MessageWithParts[]>) {
  yield `{"session":${JSON.stringify(session)},"messages":[`
  yield* (await archives()).listPieces(pages)
  yield "]}\n"
}

function printMessage({ message, parts }: MessageWithParts, worktree: string): void {
  for (const part of parts) {
    if (part.type === "text") printLine(`${prose(part.text, message.role === "user" ? "> " : "")}\n`)
    if (part.type === "file") printLine(`> [file ${part.filename ?? part.mime}]`)
    if (part.type === "tool")
      for (const line of callLine(part, worktree, process.stdout.columns || 100)) printLine(line)
  }
  const used = message.role === "assistant" ? usageWords(sumUsage([message])) : []
  if (used.length > 0) printLine(style.dim(`  ${used.join(" · ")}`))
  if (message.role === "assistant" && message.error) printLine(prose(`✗ ${message.error.message}`))
}

/** The schema of a whole archive takes long to make, and every command would: they are one module. */
function archives() {
  return import("../../session/archive-text.ts")
}
