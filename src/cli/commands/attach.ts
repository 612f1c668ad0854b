import { type Command, Option } from "commander"
import { localMinute } from "../../util/time.ts"
import { counted, shellWord } from "../../util/words.ts"
import { oneLine } from "../../view/visible.ts"
import { interruptible } from "../process/exit.ts"
import { printHint, printJson, printLine } from "../process/stdout.ts"
import { followByLines, showRecent } from "../run/follow-by-lines.ts"
import { createView, type ForegroundFlags } from "../run/foreground.ts"
import { namedSession, openClient, type RemoteFlags, tokenFlag } from "../run/remote.ts"
import { directoryOf } from "../workspace/workspace.ts"
import { formatFlag, jsonFlag, positive, tokenFileFlag } from "./flags.ts"

/** Defines `tackle attach`. */
export function defineAttach(attach: Command): void {
  attach
    .option(
      "--dir <path>",
      "use only sessions in this directory (default: all directories; with -c: the current directory)",
    )
    .argument("<url>", "URL of the server")
    .option("--limit <n>", "maximum number of sessions to list", positive, 100)
    .option("-s, --session <id>", "follow this session, and send it each line of stdin")
    .addOption(
      new Option("-c, --continue", "follow the latest session in the directory").conflicts("session"),
    )
    .addOption(tokenFileFlag())
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .option("-q, --quiet", "print one line per call, without output, diffs or progress")
    .option(
      "--auto",
      "allow each request once, but reject loops, protected files and commands that ask to leave the sandbox",
    )
    .action(attachToServer)
}

/** Flags for `tackle attach`. */
export interface AttachFlags extends RemoteFlags, Pick<ForegroundFlags, "format" | "quiet" | "auto" | "dir"> {
  /** Maximum number of sessions to list. */
  limit: number
  /** Id of the session to follow. `continue` selects the latest session in the directory. */
  session?: string
  continue?: boolean
}

/** Runs `tackle attach`: lists a server's sessions, or follows one of them and sends it each line of stdin. */
export async function attachToServer(url: string, flags: AttachFlags): Promise<void> {
  const client = openClient(url, flags, directoryOf(flags.dir))
  if (flags.session === undefined && !flags.continue) {
    // One more than the limit shows whether more sessions exist.
    const found = await client.sessions.list({ everywhere: flags.dir === undefined, limit: flags.limit + 1 })
    const sessions = found.slice(0, flags.limit)
    if (flags.format === "json") return printJson({ sessions })
    if (sessions.length === 0) return printLine("No sessions yet.")
    for (const { id, status, time, title, directory } of sessions) {
      const start = `${id}  ${localMinute(time.updated)}  ${status.padEnd(7)}  `
      const room = process.stdout.isTTY ? process.stdout.columns - start.length : Number.POSITIVE_INFINITY
      printLine(`${start}${oneLine(`${title || "(no prompt yet)"} [${directory}]`, room)}`)
    }
    if (found.length > flags.limit)
      printLine(
        `This list is limited to the newest ${counted(flags.limit, "session")}. Use --limit to list more.`,
      )
    return printHint(`To follow a session: tackle attach ${shellWord(url)}${tokenFlag(flags)} -s <id>`)
  }
  const session = await namedSession(client, flags.session)
  const info = await session.info()
  const view = createView({ ...flags, takesPrompts: true }, info)
  try {
    view.continues(info)
    await showRecent(session, view)
    await interruptible((signal) =>
      followByLines({
        api: client,
        session,
        worktree: info.worktree,
        after: info.seq,
        view,
        auto: flags.auto,
        signal,
      }),
    )
  } finally {
    await view.end()
  }
}
