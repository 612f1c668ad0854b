import type { Tackle } from "../../runtime.ts"
import type { MessageWithParts } from "../../schema/message.ts"
import type { Session } from "../../schema/session.ts"
import { UsageError } from "../../util/errors.ts"
import { localMinute } from "../../util/local-time.ts"
import { printJson, printLine } from "../print.ts"
import { type FormatFlags, openPlace, openTackle, type PlaceFlags } from "../setup.ts"
import { callLine } from "../view/call-line.ts"
import { oneLine, visible } from "../view/visible.ts"

export interface SessionListFlags extends FormatFlags {
  all?: boolean
}

/** `tackle session list`. */
export async function listSessions(flags: SessionListFlags): Promise<void> {
  await withTackle(flags, async (tackle) => {
    const sessions = await tackle.sessions.list({ everywhere: flags.all ?? false })
    if (flags.format === "json") return printJson({ sessions })
    if (sessions.length === 0) return printLine("No sessions yet.")
    for (const session of sessions) {
      const place = flags.all ? ` [${session.directory}]` : ""
      const title = session.title || "(no prompt yet)"
      const room = process.stdout.isTTY ? process.stdout.columns - 46 : Number.POSITIVE_INFINITY
      printLine(`${session.id}  ${localMinute(session.time.updated)}  ${oneLine(`${title}${place}`, room)}`)
    }
  })
}

/** `tackle session show [id]`. */
export async function showSession(id: string | undefined, flags: FormatFlags): Promise<void> {
  await withTackle(flags, async (tackle) => {
    const handle = id === undefined ? await tackle.sessions.latest() : await tackle.sessions.get(id)
    if (!handle)
      throw id === undefined ? new UsageError("There is no session of this project yet.") : noSession(id)
    const messages = await handle.messages()
    if (flags.format === "json") return printJson({ session: handle.info(), messages })
    printLine(describeSession(handle.info()))
    for (const message of messages) printMessage(message, tackle.worktree)
  })
}

/** `tackle session export <id>`: everything that is stored, for `session import` and for bug reports. */
export async function exportSession(id: string, flags: PlaceFlags): Promise<void> {
  await withTackle(flags, async (tackle) => {
    const session = await tackle.store.session(id)
    if (!session) throw noSession(id)
    const [messages, todos] = await Promise.all([tackle.store.messages(id), tackle.store.todos(id)])
    printJson({ format: "tackle.session", version: 1, session, messages, todos })
  })
}

/** `tackle session delete <id...>`. Those that are there are removed even where another is not. */
export async function deleteSessions(ids: readonly string[], flags: PlaceFlags): Promise<void> {
  await withTackle(flags, async (tackle) => {
    const missing: string[] = []
    for (const id of ids) {
      if (await tackle.sessions.delete(id)) printLine(`Deleted ${id}.`)
      else missing.push(id)
    }
    if (missing.length > 0) throw noSession(missing.join(", "))
  })
}

async function withTackle(flags: PlaceFlags, work: (tackle: Tackle) => Promise<void>): Promise<void> {
  const tackle = await openTackle(await openPlace(flags), {})
  try {
    await work(tackle)
  } finally {
    await tackle.close()
  }
}

function noSession(id: string): UsageError {
  return new UsageError(`There is no session ${id}. \`tackle session list --all\` shows them.`)
}

function describeSession({ id, title, agent, directory, model }: Session): string {
  const asked = model ? ` · ${model.providerID}/${model.modelID}` : ""
  return `${id} · ${agent}${asked} · ${directory}\n${visible(title)}\n`
}

function printMessage({ message, parts }: MessageWithParts, worktree: string): void {
  for (const part of parts) {
    if (part.type === "text")
      printLine(
        message.role === "user"
          ? `> ${visible(part.text).replaceAll("\n", "\n> ")}\n`
          : `${visible(part.text)}\n`,
      )
    if (part.type === "file") printLine(`> [file ${part.filename ?? part.mime}]`)
    if (part.type === "tool")
      for (const line of callLine(part, worktree, process.stdout.columns || 100)) printLine(line)
  }
  if (message.role === "assistant" && message.error) printLine(`✗ ${visible(message.error.message)}`)
}
