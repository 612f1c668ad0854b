import { displayPath } from "../../util/paths.ts"
import type { FormatFlags } from "../place.ts"
import { printJson, printLine } from "../print.ts"
import { withRecords } from "../records.ts"
import { oneLine, visible } from "../view/visible.ts"
import { namedOrLast, noSession } from "./session.ts"

/** `others`: files that were changed since stay as they are, where without it all of it is refused. */
export interface SessionUndoFlags extends FormatFlags {
  others?: boolean
  skip?: boolean
}

/** `tackle session undo [id]` and `tackle session redo [id]`. */
export async function undoSession(
  way: "undo" | "redo",
  id: string | undefined,
  flags: SessionUndoFlags,
): Promise<void> {
  await withRecords(flags, async (tackle) => {
    const sessionID = await namedOrLast(tackle, id)
    const { others = false, skip = false } = flags
    const result = await tackle.sessions[way](sessionID, { others, skip })
    if (!result) throw noSession(sessionID)
    if (flags.format === "json") return printJson({ sessionID, ...result })

    const done = `${skip ? "Passed over" : way === "undo" ? "Undid" : "Did again"} what this changed: `
    const room = process.stdout.isTTY ? process.stdout.columns - done.length : 60
    printLine(`${done}${oneLine(result.prompt, room)}`)
    const show = (path: string) => visible(displayPath(path, tackle.worktree))
    for (const { path, kind } of result.files) printLine(`  ${kind} ${show(path)}`)
    if (result.files.length === 0 && !skip) printLine("  Every file was so already.")
    for (const { path } of result.refused) printLine(`  left as it is: ${show(path)}`)
    for (const note of result.unseen) printLine(`  not seen whole: ${visible(note)}`)
    if (skip) printLine(`The next ${way} goes on with the turn ${way === "undo" ? "before" : "after"} it.`)
  })
}
