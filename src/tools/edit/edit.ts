import * as z from "zod"
import { changeFile, type FileChange, planWrite } from "../../files/change-file.ts"
import { PathNotFoundError } from "../../files/file-errors.ts"
import type { FileBefore } from "../../files/freshness.ts"
import { decodeText, encodeText } from "../../files/text-encoding.ts"
import { unifiedDiff } from "../../files/unified-diff.ts"
import { define } from "../../tool/tool.ts"
import { readText } from "../../util/file-system.ts"
import { errorsAfterEdit } from "../lsp/findings.ts"
import { applyEdit } from "./edit-apply.ts"
import { findEdit } from "./edit-match.ts"
import { EditError, editReport, matchError, strategyName, unclearError } from "./edit-report.ts"
import type { Reading } from "./readings.ts"
import type { Strategy } from "./strategy.ts"
import { lineNumbers } from "./text-lines.ts"

const parameters = z.lazy(() =>
  z.object({
    filePath: z.string().min(1).describe("File to change, absolute or relative"),
    oldString: z.string().describe("Text to replace, exactly as in the file"),
    newString: z.string().describe("Text that takes its place"),
    replaceAll: z.boolean().default(false).describe("Replace every occurrence"),
  }),
)

type Arguments = z.output<typeof parameters>

/** Replaces a text in a file by another. */
export const editTool = define("edit", {
  description: readText(new URL("./edit.md", import.meta.url)),
  parameters,
  access: "write",
  asksFirst: true,
  async execute(args, ctx) {
    if (args.oldString === args.newString) {
      throw new EditError("identical", "oldString and newString are identical: there is nothing to change.")
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
  /** Absent for a file that is created. `lines`: where the replaced text begins, from 1. */
  replaced?: { strategy: Strategy; reading: Reading; lines: number[] }
}

async function planCreation(before: FileBefore, title: string, args: Arguments): Promise<PlannedEdit> {
  if (args.oldString === "") return planWrite(before, title, args.newString)
  throw new PathNotFoundError(
    before.path,
    `${title} does not exist. Find the right path with glob; to create the file use write.`,
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
      `${title} exists, so oldString must name a text in it. To replace it whole use write.`,
    )
  }
  const decoded = decodeText(before.bytes)
  if (decoded.kind !== "text") throw encodingError(decoded.kind, title)
  const { text, format } = decoded

  const match = findEdit(text, args)
  if (match.kind !== "found") throw matchError(match, title, args.replaceAll)
  const { strategy, reading, spans } = match
  const lines = lineNumbers(
    text,
    spans.map((span) => span.start),
  )
  const merged = applyEdit({ text, match })
  if ("unclear" in merged) throw unclearError(merged.unclear, title, lines[0] ?? 1)
  const after = merged.text
  if (after === text) {
    throw new EditError(
      "unchanged",
      `The edit would change nothing in ${title} at line ${lines[0]}: but for white space, line endings or look-alike ` +
        "characters, which are kept as the file has them, newString is what stands there.",
    )
  }
  const diff = await unifiedDiff({ path: title, before: text, after })
  return { bytes: encodeText(after, format), diff, replaced: { strategy, reading, lines } }
}

function encodingError(kind: "binary" | "unknown", title: string): EditError {
  const what = kind === "binary" ? "is a binary file" : "is neither UTF-8 nor marked UTF-16 text"
  return new EditError(
    "encoding",
    `${title} ${what}: editing it could damage other bytes. Change it with a command that knows its format.`,
  )
}
