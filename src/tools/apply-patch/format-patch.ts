import type { FileStamp } from "../../files/file-tracker.ts"
import { showName } from "../../files/show-name.ts"
import type { ToolContext } from "../../tool/context.ts"
import { TimeoutError } from "../../util/abort.ts"
import { type Formatting, formatFile, formatReport } from "../file/format-file.ts"
import type { PlannedSection } from "./plan-patch.ts"

/** What formatters made of the files of a patch. */
export interface PatchFormatting {
  /** For the model: a line and a diff for each file that is not as it was written. */
  reports: string
  /** By file, what was made of it and why a formatter did not do its work. */
  metadata: {
    formatted?: (Formatting & { path: string })[]
    notFormatted?: { path: string; problem: string }[]
  }
}

/** For all files of a patch, in milliseconds: other sessions wait for the files meanwhile. */
const maxFormattingMs = 30_000

/**
 * Formats what a patch wrote, under the locks of its files: one file after the other, and no longer than the limit for all
 * of them. `stamps`, by path, become those of the formatted files. Never rejects: what failed is in the reports.
 */
export async function formatPatch(
  planned: readonly PlannedSection[],
  stamps: Map<string, FileStamp>,
  ctx: ToolContext,
): Promise<PatchFormatting> {
  const limit = new AbortController()
  const message = `formatters had ${maxFormattingMs / 1_000} s for the whole patch`
  const timer = setTimeout(() => limit.abort(new TimeoutError(message, maxFormattingMs)), maxFormattingMs)
  try {
    return await formatEach(planned, stamps, { ...ctx, abort: AbortSignal.any([ctx.abort, limit.signal]) })
  } finally {
    clearTimeout(timer)
  }
}

async function formatEach(
  planned: readonly PlannedSection[],
  stamps: Map<string, FileStamp>,
  ctx: ToolContext,
): Promise<PatchFormatting> {
  let reports = ""
  const formatted: (Formatting & { path: string })[] = []
  const notFormatted: { path: string; problem: string }[] = []
  const titles = new Map(
    planned.map(({ file, target }) => [(target ?? file).before.real, (target ?? file).title]),
  )
  for (const { path, bytes } of planned.flatMap(({ steps }) => steps)) {
    const stamp = stamps.get(path)
    if (!stamp || !bytes) continue
    const title = titles.get(path) ?? showName(path)
    const written = await formatFile(ctx, { path, real: path, title, bytes, stamp })
    stamps.set(path, written.stamp)
    reports += formatReport(title, written)
    if (written.formatted) formatted.push({ path, ...written.formatted })
    if (written.problem !== undefined) notFormatted.push({ path, problem: written.problem })
  }
  return {
    reports,
    metadata: {
      ...(formatted.length > 0 ? { formatted } : {}),
      ...(notFormatted.length > 0 ? { notFormatted } : {}),
    },
  }
}
