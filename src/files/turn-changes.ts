import { lstatSync } from "node:fs"
import { planCommand } from "../permission/shell/plan.ts"
import { proveReadOnly } from "../permission/shell/read-only.ts"
import type { FileChange, FileVersion } from "../schema/part.ts"
import { throwIfAborted } from "../util/abort.ts"
import { errorMessage } from "../util/errors.ts"
import { type ContentStore, hashOf } from "./content-store.ts"
import { compareScans, type Scan, type ScanLimits, scanTree } from "./scan.ts"

/** Keeps what files were before a call changed them, so that the person can undo the turn. */
export interface ChangeCapability {
  /**
   * Runs a change whose bytes are known, under the locks of its files. What was there before is safe when `work`
   * starts. Rejects as `work` does.
   */
  files<T>(
    change: { before: readonly FileContent[]; after: readonly FileContent[] },
    work: () => Promise<T>,
  ): Promise<T>
  /** Runs a command that may change any file of the worktree, and looks for what it changed. Rejects as `work` does. */
  command<T>(text: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>
}

/** What stands at a resolved path before or after a change. No bytes: no file. */
export interface FileContent {
  path: string
  bytes: Uint8Array | undefined
}

/** All that a turn did to files, as far as it is known. */
export interface TurnRecord {
  files: FileChange[]
  /** What else may have changed, in words. */
  unseen: string[]
}

/** What is watched, and where what is found is kept. */
export interface TurnChangesOptions {
  contents: ContentStore
  /** Where commands are watched. With every link followed. */
  worktree: string
  /** A directory that is none of the person's files: our own data. */
  leaveOut: string
  limits: ScanLimits
  /** Stores the record, which is whole each time. Not called in a turn that changes nothing. */
  save(record: TurnRecord): Promise<void>
}

/**
 * Notes what one turn does to files. A change by a tool is on record before it is made, with its outcome, so that it
 * can be undone whenever the process ends; a command's is known when it has ended.
 */
export function createTurnChanges(options: TurnChangesOptions): ChangeCapability {
  const { contents, save } = options
  const entries = new Map<string, FileChange>()
  const unseen = new Set<string>()
  let latest: Scan | undefined
  let window: Window | undefined

  const store = () => save({ files: [...entries.values()].filter(isChange), unseen: [...unseen] })

  /** A change begins with what the last one left, or somebody else came between. */
  function add(change: FileChange): void {
    const known = entries.get(change.path)
    if (!known) {
      entries.set(change.path, change)
      return
    }
    const { before, fixed } = known
    const next: FileChange = { path: change.path }
    if (before) next.before = before
    if (change.after) next.after = change.after
    const cause = isSameBytes(known.after, change.before) ? (fixed ?? change.fixed) : "mixed"
    if (cause !== undefined) next.fixed = cause
    entries.set(change.path, next)
  }

  /** The first of the commands that run side by side looks at the tree for all of them. */
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

  /** One look at the tree after the other; each serves every command that ended before it began. */
  async function leave(left: Window, text: string): Promise<void> {
    left.ended.push(text)
    left.next ??= left.looked.then(() => {
      delete left.next
      return look(left)
    })
    // Whoever waits for a look hears how it failed, the one after it does not.
    left.looked = left.next.catch(() => {})
    try {
      await left.next
    } finally {
      left.running -= 1
      if (left.running === 0 && window === left) window = undefined
    }
  }

  async function look(left: Window): Promise<void> {
    const texts = left.ended.splice(0)
    const since = left.since
    const before = await left.base
    const now = Date.now()
    const after = before && (await scan(before))
    // Commands that go on answer only for what changes from here.
    left.base = Promise.resolve(after)
    left.since = now
    latest = after
    const told = unseen.size
    let changed = false
    if (before && after) changed = await note(before, after, { since, texts, byTools: left.byTools })
    else tell(texts, "the worktree could not be read")
    if (changed || unseen.size > told) await store()
  }

  function tell(texts: readonly string[], what: string): void {
    for (const text of texts) if (unseen.size < maxUnseen) unseen.add(`${shortened(text)}: ${what}`)
  }

  /** True where it changed any file. */
  async function note(
    before: Scan,
    after: Scan,
    { since, texts, byTools }: { since: number; texts: readonly string[]; byTools: ReadonlySet<string> },
  ): Promise<boolean> {
    const { changes, appeared } = compareScans(before, after, since)
    for (const { change, bytes } of changes) {
      const known = entries.get(change.path)
      if (known && byTools.has(change.path) && isSameBytes(known.after, change.after)) continue
      if (bytes && (await contents.put(bytes)) === undefined) change.fixed = "too-large"
      add(change)
    }
    if (!before.complete || !after.complete)
      tell(texts, `only ${options.limits.entries} files and directories of the worktree were looked at`)
    if (before.complete && appeared.length > 0)
      tell(texts, `${appeared.slice(0, 3).join(", ")} came into sight, but not as new files`)
    return changes.length > 0
  }

  /** Undefined where the worktree cannot be read: that is no reason to run no command. */
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
        // It is not made: the next change begins with what the one before it left.
        for (const { path } of changes) entries.delete(path)
        for (const entry of previous) entries.set(entry.path, entry)
        throw error
      }
      for (const { path } of changes) window?.byTools.add(path)
      try {
        return await work()
      } catch (error) {
        for (const entry of previous) entries.set(entry.path, entry)
        if (previous.length > 0) await store()
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

/** Commands that run side by side, and what the tree was before them. */
interface Window {
  since: number
  base: Promise<Scan | undefined>
  running: number
  /** Files that tools changed meanwhile, such as those of a subagent. */
  byTools: Set<string>
  /** Commands that have ended and after which nobody has looked yet. */
  ended: string[]
  /** The last look. Never rejects. */
  looked: Promise<void>
  /** The look that has not begun. */
  next?: Promise<void>
}

/** So many notes on commands are kept of a turn. */
const maxUnseen = 20

async function keep(
  { path, bytes }: FileContent,
  next: Uint8Array | undefined,
  contents: ContentStore,
): Promise<FileChange> {
  const change: FileChange = { path }
  const mode = lstatSync(path, { throwIfNoEntry: false })?.mode
  const bits = mode === undefined ? {} : { mode: mode & 0o7777 }
  if (bytes) {
    const hash = await contents.put(bytes)
    change.before = { hash: hash ?? hashOf(bytes), ...bits }
    if (hash === undefined) change.fixed = "too-large"
  }
  if (next) change.after = { hash: hashOf(next), ...bits }
  return change
}

function isSameBytes(a: FileVersion | undefined, b: FileVersion | undefined): boolean {
  return a?.hash === b?.hash
}

function isChange({ before, after, fixed }: FileChange): boolean {
  return fixed !== undefined || !isSameBytes(before, after) || before?.mode !== after?.mode
}

function shortened(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, " ")
  return line.length > 60 ? `${line.slice(0, 60)}…` : line
}

/** True for a command text that is proved to change no file: it need not be watched. */
async function onlyReads(text: string): Promise<boolean> {
  const { commands, files, opaque, garbled } = await planCommand(text)
  if (opaque !== undefined || garbled || commands.length === 0) return false
  const written = files.filter(({ kind, target }) => kind === "write" && target.text !== "/dev/null")
  return written.length === 0 && commands.every((command) => proveReadOnly(command))
}
