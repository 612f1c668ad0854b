import * as z from "zod"
import { changeFile, type FileChange, planWrite } from "../../files/change-file.ts"
import { PathNotFoundError } from "../../files/file-errors.ts"
import { decodeBefore, type FileBefore } from "../../files/freshness.ts"
import { encodeText } from "../../files/text-encoding.ts"
import { unifiedDiff } from "../../files/unified-diff.ts"
import { define } from "../../tool/tool.ts"
import { readText } from "../../util/file-system.ts"
import { errorsAfterEdit } from "../lsp/findings.ts"
import { applyEdit } from "./apply-edit.ts"
import { findEdit } from "./find-edit.ts"
import type { Reading } from "./readings.ts"
import { EditError, editReport, matchError, strategyName, unclearError } from "./report.ts"
import type { StrategyName } from "./strategies.ts"
import { lineNumbers } from "./text.ts"

const parameters = z.lazy(() =>
  z.object({
    filePath: z.string().min(1).describe("File to change, absolute or relative"),
    oldString: z.string().describe("Text to replace, exactly as in the file"),
    newString: z.string().describe("Replacement text"),
    replaceAll: z.boolean().default(false).describe("Replace every occurrence"),
  }),
)

type Arguments = z.output<typeof parameters>

/** Replaces text in a file. With an empty `oldString`, creates the file. */
export const editTool = define("edit", {
  description: readText(new URL("./edit.md", import.meta.url)),
  parameters,
  access: "write",
  asksFirst: true,
  async execute(args, ctx) {
    if (args.oldString === args.newString) {
      throw new EditError("identical", "oldString and newString are identical. Nothing to change.")
    }
    const { change, title, formatting, metadata } = await changeFile(ctx, args.filePath, (before, title) =>
      before.exists ? planReplacement(before, title, args) : planCreation(before, title, args),
    )
    const { replaced, diff } = change
    const kind = replaced ? "changed" : "created"
    const errors = await errorsAfterEdit(ctx, [{ path: metadata.file.path, kind }])
    if (!replaced) return { title, output: `Created ${title}.${formatting}${errors}`, metadata }
    const { strategy, reading, lines } = replaced
    return {
      title,
      output: editReport({ title, strategy, reading, lines, diff }) + formatting + errors,
      metadata: { ...metadata, strategy: strategyName(strategy, reading), replacements: lines.length },
    }
  },
})

interface PlannedEdit extends FileChange {
  /**
   * The replaced text: the strategy and the reading that found the text, and the line numbers, from 1, at which the
   * text began. Absent if the file is created.
   */
  replaced?: { strategy: StrategyName; reading: Reading; lines: number[] }
}

async function planCreation(before: FileBefore, title: string, args: Arguments): Promise<PlannedEdit> {
  if (args.oldString === "") return planWrite(before, title, args.newString)
  throw new PathNotFoundError(
    before.path,
    `${title} does not exist. Find the right path with glob, or create the file with write.`,
  )
}

async function planReplacement(
  before: Extract<FileBefore, { exists: true }>,
  title: string,
  args: Arguments,
): Promise<PlannedEdit> {
  if (args.oldString === "") {
    throw new EditError(
      "empty",
      `${title} exists, so oldString must not be empty. To replace the whole file, use write.`,
    )
  }
  const advice = "Change it with a command that supports its format."
  const { text, format } = decodeBefore(before, title, advice)
  const match = findEdit(text, args)
  if (match.kind !== "found") throw matchError(match, title, args.replaceAll)
  const { strategy, reading, spans } = match
  const starts = spans.map((span) => span.start)
  const lines = lineNumbers(text, starts)
  const merged = applyEdit({ text, match })
  if ("unclear" in merged) throw unclearError(merged.unclear, title, lines[0] ?? 1)
  const after = merged.text
  if (after === text) {
    throw new EditError(
      "unchanged",
      `The edit would change nothing in ${title} at line ${lines[0]}: newString differs from the file only in white ` +
        "space, line endings or look-alike characters, which are kept as in the file.",
    )
  }
  const diff = await unifiedDiff({ path: title, before: text, after })
  return { bytes: encodeText(after, format), diff, replaced: { strategy, reading, lines } }
}
