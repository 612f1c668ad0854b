import { lstat, readFile, readlink } from "node:fs/promises"
import { unifiedDiff } from "../files/unified-diff.ts"
import type { FileChange, FileVersion } from "../schema/part.ts"
import { type ContentStore, hashOf } from "../store/content-store.ts"
import { displayPath } from "../util/paths.ts"
import { historyPages, type PageReader } from "./history.ts"

/** A file that a session changed. */
export interface FileDiff {
  /** Absolute path with all links resolved. */
  path: string
  kind: "added" | "changed" | "deleted"
  /** Unified diff as `unifiedDiff` returns it. Absent if one of the contents is binary or no longer available. */
  diff?: string
}

/**
 * Compares the content of each changed file before the session's first change with the content after its last change.
 * Does not include changes that were undone. Omits files whose content and mode are the same.
 */
export async function diffSession({
  readPage,
  contents,
  worktree,
}: {
  readPage: PageReader
  contents: ContentStore
  worktree: string
}): Promise<FileDiff[]> {
  const changes = new Map<string, Pick<FileChange, "before" | "after">>()
  for await (const page of historyPages(readPage)) {
    for (const part of page.flatMap(({ parts }) => parts)) {
      if (part.type !== "patch") continue
      for (const { path, before, after, left } of part.files) {
        if (part.undone && !left) continue
        changes.set(path, { before: changes.has(path) ? changes.get(path)?.before : before, after })
      }
    }
  }

  async function textOf(path: string, { hash }: FileVersion): Promise<string | undefined> {
    const bytes = (await contents.get(hash)) ?? (await unchanged(path, hash, contents.fileBytes))
    return bytes === undefined || bytes.includes(0) ? undefined : Buffer.from(bytes).toString("utf8")
  }

  const diffs: FileDiff[] = []
  for (const [path, { before, after }] of changes) {
    if (before?.hash === after?.hash && before?.mode === after?.mode) continue
    const kind = before === undefined ? "added" : after === undefined ? "deleted" : "changed"
    const [from, to] = [before && (await textOf(path, before)), after && (await textOf(path, after))]
    const isKnown = (from !== undefined || !before) && (to !== undefined || !after)
    const name = displayPath(path, worktree)
    diffs.push(
      isKnown
        ? { path, kind, diff: await unifiedDiff({ path: name, before: from, after: to }) }
        : { path, kind },
    )
  }
  return diffs
}

/**
 * Returns the bytes of a file, or undefined if the file no longer has the content that the session wrote. A local store
 * contains only the content that a file had before a change.
 */
async function unchanged(path: string, hash: string, maxBytes: number): Promise<Uint8Array | undefined> {
  try {
    const found = await lstat(path)
    if (found.size > maxBytes) return undefined
    // Reading a special file could block.
    if (!found.isFile() && !found.isSymbolicLink()) return undefined
    const bytes = found.isFile() ? await readFile(path) : Buffer.from(await readlink(path))
    return hashOf(bytes) === hash ? bytes : undefined
  } catch {
    return undefined
  }
}
