import { lstatSync } from "node:fs"
import { dirname } from "node:path"
import { planCommand } from "../permission/shell/plan-command.ts"
import { proveReadOnly } from "../permission/shell/read-only-proof.ts"
import type { FileChange, FileVersion } from "../schema/part.ts"
import { type ContentStore, hashOf } from "../store/content-store.ts"
import { throwIfAborted } from "../util/abort.ts"
import { forEachConcurrently } from "../util/concurrent.ts"
import { errorMessage } from "../util/errors.ts"
import { firstPaths } from "../util/words.ts"
import { RollbackError } from "./commit-files.ts"
import { compareScans, type Scan, type ScanLimits, type SeenChange, scanTree } from "./scan.ts"

/** Records the content of files before a call changes them, so that the user can undo the turn. */
export interface ChangeCapability {
  /**
   * Runs a change whose new content is known. The caller must hold the locks of the changed files. Stores the old
   * content before it calls `work`. If `work` fails, rejects with its error.
   */
  files<T>(
    change: { before: readonly FileContent[]; after: readonly FileContent[] },
    work: () => Promise<T>,
  ): Promise<T>
  /**
   * Runs a command that may change any file in the worktree, and detects the changes. If `work` fails, rejects with its
   * error.
   */
  command<T>(text: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>
}

/** Content of a file before or after a change. `path` is resolved. `bytes` is undefined if the file does not exist. */
export interface FileContent {
  path: string
  bytes: Uint8Array | undefined
}

/** The known file changes of a turn. */
export interface TurnRecord {
  files: FileChange[]
  /** Descriptions of changes that may have happened but could not be tracked. */
  unseen: string[]
}

/** Options for {@link createTurnChanges}. */
export interface TurnChangesOptions {
  contents: ContentStore
  /** Directory to watch, with all links resolved. */
  worktree: string
  /** Path of the data directory, which is not scanned. */
  leaveOut: string
  limits: ScanLimits
  /** Stores the whole record. Not called for a turn without changes. */
  save(record: TurnRecord): Promise<void>
  /** Stores the whole record without waiting, at the latest when the call ends. */
  note(record: TurnRecord): void
}

/**
 * Records the file changes of one turn. A change by a tool is recorded before it is made, so that it can be undone even
 * if the process exits. Changes by a command are recorded after it has finished.
 */
export function createTurnChanges(options: TurnChangesOptions): ChangeCapability {
  const { contents, save } = options
  const entries = new Map<string, FileChange>()
  const unseen = new Set<string>()
  let latest: Scan | undefined
  let window: Window | undefined

  const record = () => ({ files: [...entries.values()].filter(isChange), unseen: [...unseen] })
  const store = () => save(record())

  /**
   * Adds a change, merged with earlier changes to the same file. If the change's old content differs from the result of
   * the previous change, another program changed the file in between, so the file cannot be put back.
   */
  function add(change: FileChange): void {
    const known = entries.get(change.path)
    if (!known) {
      entries.set(change.path, change)
      return
    }
    const { before, fixed } = known
    const next: FileChange = { path: change.path, directory: known.directory ?? change.directory }
    if (before) next.before = before
    if (change.after) next.after = change.after
    const cause = isSameBytes(known.after, change.before) ? (fixed ?? change.fixed) : "mixed"
    if (cause !== undefined) next.fixed = cause
    entries.set(change.path, next)
  }

  /**
   * Starts to watch the worktree for changes by a command. Concurrent commands share the scan that ran before the first
   * of them.
   */
  async function enter(): Promise<Window> {
    window ??= {
      since: Date.now(),
      base: scan(latest),
      running: 0,
      byTools: new Set(),
      ended: [],
      looked: Promise.resolve(),
    }
    const entered = window
    entered.running += 1
    await entered.base
    return entered
  }

  /**
   * Stops watching the worktree for changes by a command. Scans run one at a time. Each scan detects the changes of all
   * commands that finished before the scan started.
   */
  async function leave(left: Window, text: string): Promise<void> {
    left.ended.push(text)
    left.next ??= left.looked.then(() => {
      delete left.next
      return scanAfter(left)
    })
    // A failed scan rejects for its commands, but not for the next scan.
    left.looked = left.next.catch(() => {})
    try {
      await left.next
    } finally {
      left.running -= 1
      if (left.running === 0 && window === left) window = undefined
    }
  }

  async function scanAfter(left: Window): Promise<void> {
    const texts = left.ended.splice(0)
    const since = left.since
    const before = await left.base
    const now = Date.now()
    const after = before && (await scan(before))
    // From here on, attribute only later changes to commands that are still running.
    left.base = Promise.resolve(after)
    left.since = now
    latest = after
    const known = unseen.size
    let changed = false
    if (before && after) changed = await note(before, after, { since, texts, byTools: left.byTools })
    else describe(texts, "the worktree could not be read")
    // The command has already made its changes, so their record is stored with its result.
    if (changed || unseen.size > known) options.note(record())
  }

  function describe(texts: readonly string[], what: string): void {
    for (const text of texts) if (unseen.size < maxUnseen) unseen.add(`${shortened(text)}: ${what}`)
  }

  /** Records the differences between two scans. Returns true if any file changed. */
  async function note(
    before: Scan,
    after: Scan,
    { since, texts, byTools }: { since: number; texts: readonly string[]; byTools: ReadonlySet<string> },
  ): Promise<boolean> {
    const { changes, appeared, unknown } = compareScans(before, after, since, contents.fileBytes)
    const isByTool = ({ change: { path, after } }: SeenChange) =>
      byTools.has(path) && entries.has(path) && isSameBytes(entries.get(path)?.after, after)
    const seen = changes.filter((each) => !isByTool(each))
    await forEachConcurrently(seen, maxStoring, (each) => keepContents(each, texts))
    // A tool may have recorded a change in the meantime.
    for (const each of seen) if (!isByTool(each)) add(each.change)
    if (before.limited || after.limited)
      describe(texts, `only ${options.limits.entries} files and directories in the worktree were scanned`)
    const unreadable = [...new Set([...after.unreadable, ...unknown, ...before.unreadable])]
    if (unreadable.length > 0)
      describe(texts, `the scan is incomplete: cannot read ${firstPaths(unreadable)}`)
    if (!before.limited && appeared.length > 0)
      describe(
        texts,
        `the earlier state of ${firstPaths(appeared)} is unknown, because ${appeared.length === 1 ? "the file was" : "these files were"} ignored or not scanned before`,
      )
    return changes.length > 0
  }

  async function keepContents({ change, bytes, next }: SeenChange, texts: readonly string[]): Promise<void> {
    try {
      // The command has already made its changes, so the contents are stored with their record.
      if (bytes && (await storeSoon(bytes, contents)) === undefined) change.fixed = "too-large"
    } catch (error) {
      change.fixed = "unstored"
      describe(texts, `the old content of ${change.path} could not be stored (${errorMessage(error)})`)
    }
    try {
      await keepResult(next, contents)
    } catch (error) {
      describe(texts, `the new content of ${change.path} could not be stored (${errorMessage(error)})`)
    }
  }

  /** Scans the worktree. Returns undefined if the worktree cannot be read. This failure does not stop the command. */
  async function scan(known: Scan | undefined): Promise<Scan | undefined> {
    const { worktree, leaveOut, limits } = options
    try {
      return await scanTree(worktree, { limits, known, leaveOut })
    } catch (error) {
      unseen.add(`The worktree could not be read: ${errorMessage(error)}`)
      return undefined
    }
  }

  return {
    async files({ before, after }, work) {
      const old = new Map(before.map(({ path, bytes }) => [path, bytes]))
      const changes: FileChange[] = []
      for (const { path, bytes } of after)
        changes.push(await keep({ path, bytes: old.get(path) }, bytes, contents))
      const previous = changes.flatMap(({ path }) => entries.get(path) ?? [])
      for (const change of changes) add(change)
      try {
        await store()
      } catch (error) {
        // The change has not been made, so the previous entries are restored.
        for (const { path } of changes) entries.delete(path)
        for (const entry of previous) entries.set(entry.path, entry)
        throw error
      }
      for (const { path } of changes) window?.byTools.add(path)
      try {
        return await work()
      } catch (error) {
        // After a failed rollback, some of the changes may have been made.
        if (!(error instanceof RollbackError)) for (const { path } of changes) entries.delete(path)
        for (const entry of previous) entries.set(entry.path, entry)
        // The error of the change is more important than an error of the record.
        await store().catch(() => {})
        throw error
      }
    },
    async command(text, signal, work) {
      if (await onlyReads(text)) return work()
      const entered = await enter()
      try {
        throwIfAborted(signal)
        return await work()
      } finally {
        await leave(entered, text)
      }
    },
  }
}

/** A group of concurrent commands, and the scan that ran before them. */
interface Window {
  since: number
  base: Promise<Scan | undefined>
  running: number
  /** Paths of files that tools changed in the meantime, for example in a subagent. */
  byTools: Set<string>
  /** Texts of the commands that finished since the latest scan started. */
  ended: string[]
  /** Resolves when the most recently requested scan has finished. Never rejects. */
  looked: Promise<void>
  /** The next scan. Absent once it has started. */
  next?: Promise<void>
}

/** Maximum number of descriptions per turn. */
const maxUnseen = 20

/** Maximum number of contents that are stored at once. A request to a shared store takes up to 50 ms. */
const maxStoring = 16

/** Stores the content after a change if other machines share the store, so that these machines can rebuild the file. */
async function keepResult(next: Uint8Array | undefined, contents: ContentStore): Promise<void> {
  if (next && contents.isShared) await storeSoon(next, contents)
}

/** Stores the content with the next commit, if the store has commits. */
function storeSoon(bytes: Uint8Array, contents: ContentStore): Promise<string | undefined> {
  return contents.note ? contents.note(bytes) : contents.put(bytes)
}

async function keep(
  { path, bytes }: FileContent,
  next: Uint8Array | undefined,
  contents: ContentStore,
): Promise<FileChange> {
  const change: FileChange = { path }
  const mode = lstatSync(path, { throwIfNoEntry: false })?.mode
  const bits = mode === undefined ? {} : { mode: mode & 0o7777 }
  const [hash] = await Promise.all([bytes && contents.put(bytes), keepResult(next, contents)])
  if (bytes) {
    change.before = { hash: hash ?? hashOf(bytes), ...bits }
    if (hash === undefined) change.fixed = "too-large"
  }
  if (next) change.after = { hash: hashOf(next), ...bits }
  if (!bytes) change.directory = topmostMissing(path)
  return change
}

/** Returns the topmost directory in the path that does not exist. */
function topmostMissing(path: string): string | undefined {
  const directory = dirname(path)
  if (lstatSync(directory, { throwIfNoEntry: false })) return undefined
  return topmostMissing(directory) ?? directory
}

function isSameBytes(a: FileVersion | undefined, b: FileVersion | undefined): boolean {
  return a?.hash === b?.hash && a?.link === b?.link
}

function isChange({ before, after, fixed }: FileChange): boolean {
  return fixed !== undefined || !isSameBytes(before, after) || before?.mode !== after?.mode
}

function shortened(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, " ")
  return line.length > 60 ? `${line.slice(0, 60)}…` : line
}

/** Returns true for a command that provably changes no file. These commands are not watched. */
async function onlyReads(text: string): Promise<boolean> {
  const { commands, files, opaque, garbled } = await planCommand(text)
  if (opaque !== undefined || garbled || commands.length === 0) return false
  const written = files.filter(({ kind, target }) => kind === "write" && target.text !== "/dev/null")
  return written.length === 0 && commands.every((command) => proveReadOnly(command))
}
