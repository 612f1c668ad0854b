import type { PruneChoice } from "../../session/prune.ts"
import { localMinute } from "../../util/local-time.ts"
import type { FormatFlags } from "../place.ts"
import { printJson, printLine } from "../print.ts"
import { withRecords } from "../records.ts"
import { oneLine } from "../view/visible.ts"

/** Which sessions go: both limits have to be passed where both are given. */
export interface SessionPruneFlags extends FormatFlags {
  /** In milliseconds. */
  olderThan?: number
  keep?: number
  all?: boolean
  dryRun?: boolean
}

/** `tackle session prune`. */
export async function pruneSessions(flags: SessionPruneFlags): Promise<void> {
  const { dryRun = false, all: everywhere = false } = flags
  const choice: PruneChoice = {
    ...(flags.olderThan === undefined ? {} : { olderThanMs: flags.olderThan }),
    ...(flags.keep === undefined ? {} : { keep: flags.keep }),
  }
  await withRecords(flags, async (tackle) => {
    const { deleted, held } = await tackle.sessions.prune({ ...choice, everywhere, dryRun })
    if (flags.format === "json") return printJson({ dryRun, deleted, held })
    for (const { id, title, time } of deleted)
      printLine(`${id}  ${localMinute(time.updated)}  ${oneLine(title || "(no prompt yet)", 60)}`)
    for (const { id } of held) printLine(`${id} stays: a run works on it.`)
    printLine(
      `${dryRun ? "Would delete" : "Deleted"} ${deleted.length} session${deleted.length === 1 ? "" : "s"}.`,
    )
  })
}
