import type { FormatFlags } from "../place.ts"
import { printJson, printLine } from "../print.ts"
import { namedOrLast, noSession, withTackle } from "./session.ts"

/** `tackle session compact [id]`. */
export async function compactSession(id: string | undefined, flags: FormatFlags): Promise<void> {
  await withTackle(flags, async (tackle) => {
    const sessionID = await namedOrLast(tackle, id)
    const result = await tackle.sessions.compact(sessionID)
    if (!result) throw noSession(sessionID)
    if (flags.format === "json") return printJson({ sessionID, ...result })
    const { before, after, pruned, summarized } = result
    if (pruned === 0 && !summarized)
      return printLine(
        `There is nothing to compact in ${sessionID} yet: a summary would be no shorter than its ${before} characters.`,
      )
    const outputs = pruned === 0 ? "" : `, with ${pruned} old ${pruned === 1 ? "output" : "outputs"} in files`
    printLine(`Compacted ${sessionID}: the model reads ${after} in place of ${before} characters${outputs}.`)
  })
}
