import type { Stats } from "node:fs"
import { basename } from "node:path"
import * as z from "zod"
import { OffsetError, UnreadableContentError } from "../files/file-errors.ts"
import { fileKind, sampleBytes, type TextEncoding } from "../files/file-kind.ts"
import { type OpenFile, openFile, pinnedPatterns, readStart, statPath } from "../files/open-file.ts"
import { readMedia } from "../files/read-media.ts"
import { readDirectoryPage, readTextPage, type TextPage } from "../files/read-page.ts"
import { nameAttribute, showName } from "../files/show-name.ts"
import type { ToolContext } from "../tool/context.ts"
import { define, type ToolResult } from "../tool/tool.ts"
import { readText } from "../util/file-system.ts"
import { displayPath, realPath, resolvePath } from "../util/paths.ts"
import { identityAt } from "../util/pinned-path.ts"
import { counted } from "../util/words.ts"

const defaultLimit = 2000

/** Number of lines in the preview that user interfaces show. */
const previewLines = 20

const parameters = z.lazy(() =>
  z.object({
    filePath: z.string().min(1).describe("File or directory, absolute or relative"),
    offset: z.coerce.number().int().min(0).optional().describe("Index of the first line or entry, from 0"),
    limit: z.coerce
      .number()
      .int()
      .min(1)
      .optional()
      .describe(`Number of lines or entries (default ${defaultLimit})`),
  }),
)

/** A file or directory to read. */
interface Target {
  path: string
  /** Path with links resolved, determined before permission is requested. */
  real: string
  title: string
  offset: number
  limit: number
}

/** Reads lines of text, attaches images and PDFs, and lists directories. */
export const readTool = define("read", {
  description: readText(new URL("./read.md", import.meta.url)),
  parameters,
  access: "read",
  async execute(args, ctx) {
    const path = resolvePath(args.filePath, ctx.directory)
    const real = resolved(path)
    const title = showName(displayPath(path, ctx.worktree))
    const target: Target = { path, real, title, offset: args.offset ?? 0, limit: args.limit ?? defaultLimit }
    const identity = identityAt(real)
    await ctx.ask({
      permission: "read",
      patterns: pinnedPatterns(path, real),
      always: ["*"],
      metadata: { filePath: path },
    })

    const found = await statPath(path, "File")
    if (found.isDirectory()) return readDirectory(target, ctx)
    const handle = await openFile(path, real, { identity })
    try {
      const kind = fileKind(basename(path), readStart(handle, sampleBytes))
      if (kind.kind === "binary") throw binary(path, found)
      const result =
        kind.kind === "media"
          ? await attach(handle, target, kind.mime, ctx)
          : await readLines(handle, target, kind.encoding, ctx)
      return await withInstructions(result, real, ctx)
    } finally {
      handle.close()
    }
  },
})

async function readDirectory(target: Target, ctx: ToolContext): Promise<ToolResult> {
  const { path, title, offset, limit } = target
  const { entries, total } = await readDirectoryPage(path, { offset, limit, signal: ctx.abort })
  if (offset > 0 && offset >= total) {
    throw new OffsetError(
      `${showName(path)} has ${counted(total, "entry", "entries")}; offset ${offset} is past the last entry.`,
    )
  }
  const end = offset + entries.length
  const footer =
    end < total
      ? `(Entries ${offset + 1}-${end} of ${total}. Continue with offset ${end}.)`
      : `(${counted(total, "entry", "entries")} in total.)`
  const body = total === 0 ? "(empty directory)" : entries.join("\n")
  return {
    title,
    output: `<directory path="${nameAttribute(path)}">\n${body}\n</directory>\n${footer}`,
    metadata: { type: "directory", truncated: end < total, total, preview: preview(entries) },
  }
}

async function attach(handle: OpenFile, target: Target, mime: string, ctx: ToolContext): Promise<ToolResult> {
  const { path, real, title } = target
  const { url, bytes, stamp, scaled, ...media } = await readMedia(handle, { path, mime, signal: ctx.abort })
  const file = { path: real, stamp }
  ctx.files.record(file.path, stamp)
  const made = scaled ? `; scaled from ${scaled.from} to ${scaled.to} pixels` : ""
  return {
    title,
    output: `${showName(path)} is attached (${mime}, ${bytes} bytes${made}).`,
    metadata: { type: mime === "application/pdf" ? "pdf" : "image", truncated: false, file },
    attachments: [{ type: "file", mime: media.mime, url, filename: basename(path) }],
  }
}

async function readLines(
  handle: OpenFile,
  target: Target,
  encoding: TextEncoding,
  ctx: ToolContext,
): Promise<ToolResult> {
  const { path, real, title, offset, limit } = target
  const page = await readTextPage(handle, { encoding, offset, limit, signal: ctx.abort })
  if (offset > 0 && page.lines.length === 0) {
    throw new OffsetError(
      `${showName(path)} has ${counted(page.total ?? 0, "line")}; offset ${offset} is past the last line. ` +
        "The first line has offset 0.",
    )
  }
  const file = { path: real, stamp: page.stamp }
  ctx.files.record(file.path, page.stamp)

  const numbered = page.lines.map((line, index) => `${String(offset + index + 1).padStart(5)}→${line}`)
  const truncated = page.more || page.cut > 0
  const body = page.lines.length === 0 ? "(empty file)" : numbered.join("\n")
  return {
    title,
    output: `<file path="${nameAttribute(path)}">\n${body}\n</file>\n${footer(page, offset, encoding)}`,
    metadata: {
      type: "text",
      truncated,
      ...(truncated && { originalSize: page.stamp.size }),
      totalLines: page.total,
      shownLines: page.lines.length,
      preview: preview(page.lines),
      file,
    },
  }
}

/** Adds the instructions that apply to the file's directories, unless the session has already received them. */
async function withInstructions(result: ToolResult, file: string, ctx: ToolContext): Promise<ToolResult> {
  const found = (await ctx.instructions?.near(file)) ?? []
  if (found.length === 0) return result
  const texts = found.map(({ text }) => `<instructions>\n${text}\n</instructions>`)
  return {
    ...result,
    output: [result.output, ...texts].join("\n\n"),
    metadata: { ...result.metadata, instructions: found.map(({ path }) => path) },
  }
}

function footer(page: TextPage, offset: number, encoding: TextEncoding): string {
  const end = offset + page.lines.length
  const total = page.total === undefined ? "more lines follow" : `${page.total} in total`
  const notes: string[] = []
  if (!page.more) notes.push(`(End of file: ${counted(page.total ?? 0, "line")} in total.)`)
  else if (page.full) {
    notes.push(`(Capped at 50 KB: lines ${offset + 1}-${end}, ${total}. Continue with offset ${end}.)`)
  } else notes.push(`(Lines ${offset + 1}-${end}, ${total}. Continue with offset ${end}.)`)
  if (page.invalid) notes.push(`(The file is not valid ${encoding}: \ufffd replaces invalid bytes.)`)
  return notes.join("\n")
}

/**
 * Returns the path with links resolved. If that fails, returns the path unchanged, and opening the path reports the
 * error.
 */
function resolved(path: string): string {
  try {
    return realPath(path)
  } catch {
    return path
  }
}

function preview(lines: readonly string[]): string {
  return lines.slice(0, previewLines).join("\n")
}

function binary(path: string, { size }: Stats): UnreadableContentError {
  return new UnreadableContentError(
    `${showName(path)} is a binary file of ${counted(size, "byte")} and cannot be shown as text. ` +
      "Inspect it with a command such as file, unzip -l or xxd.",
  )
}
