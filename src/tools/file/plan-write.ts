import type { FileBefore } from "../../files/freshness.ts"
import { decodeText, encodeText, plainText, type TextFormat } from "../../files/text-encoding.ts"
import { unifiedDiff } from "../../files/unified-diff.ts"
import type { FileChange } from "./change-file.ts"

/**
 * The bytes and the diff of a file that is written whole. An existing text keeps its encoding and byte order mark;
 * everything else gets the content as UTF-8, byte for byte.
 */
export async function planWrite(before: FileBefore, title: string, content: string): Promise<FileChange> {
  const old = before.exists ? decodeText(before.bytes) : undefined
  const text = old?.kind === "text" ? old : undefined
  const format = text?.format ?? plainText
  const bytes = encodeText(withoutSecondMark(content, format), format)
  if (before.exists && !text) {
    return { bytes, diff: `[${title} is no text now: ${before.bytes.length} bytes become ${bytes.length}]\n` }
  }
  return { bytes, diff: await unifiedDiff({ path: title, before: text?.text, after: content }) }
}

function withoutSecondMark(content: string, format: TextFormat): string {
  return format.bom && content.startsWith("\ufeff") ? content.slice(1) : content
}
