import { closeSync, constants, fstatSync, readFileSync, type Stats, statSync } from "node:fs"
import { pathToFileURL } from "node:url"
import { systemCode, TackleError } from "../util/errors.ts"
import { openPinned } from "../util/pinned-path.ts"
import { ServerAnswerError } from "./errors.ts"
import { languageOf } from "./servers.ts"

/** The files that a server has open: what it knows of them is what is on disk. */
export interface DocumentBook {
  /**
   * Opens the file, or tells the server what it holds now. The path is resolved, and a link that was put in its way is
   * not followed: `MovedPathError`. Throws `ServerAnswerError` for what is no file or too large, and what the system throws.
   */
  show(path: string): void
  /** Tells the server of all that changed on disk since, and closes what is gone. */
  refresh(): void
  /** How often the file was shown; the number of its state. 0: never. */
  version(path: string): number
}

/** Files above this are not sent: servers hold several copies in memory and give up on such files anyway. In bytes. */
const maxBytes = 4 * 1024 * 1024

/** Open files beyond this many are closed, the longest unused first. */
const maxOpen = 64

interface OpenDocument {
  version: number
  ino: number
  size: number
  mtimeMs: number
}

/** Files are read at once, not in turns: no change can then overtake another. */
export function createDocumentBook({
  notify,
  onShow,
}: {
  notify(method: string, params: unknown): void
  /** Called before the server is told what a file holds. */
  onShow(path: string): void
}): DocumentBook {
  const open = new Map<string, OpenDocument>()

  function show(path: string): void {
    const before = open.get(path)
    const { ino, size, mtimeMs } = statSync(path)
    if (before && before.ino === ino && before.size === size && before.mtimeMs === mtimeMs) {
      open.delete(path)
      open.set(path, before)
      return
    }
    const { text, stats } = readDocument(path)
    const version = (before?.version ?? 0) + 1
    open.delete(path)
    open.set(path, { version, ino: stats.ino, size: stats.size, mtimeMs: stats.mtimeMs })
    const uri = pathToFileURL(path).href
    onShow(path)
    if (before) {
      notify("textDocument/didChange", { textDocument: { uri, version }, contentChanges: [{ text }] })
    } else {
      notify("textDocument/didOpen", { textDocument: { uri, languageId: languageOf(path), version, text } })
      closeOldest()
    }
  }

  function closeOldest(): void {
    const [oldest] = open.keys()
    if (open.size > maxOpen && oldest !== undefined) close(oldest)
  }

  function close(path: string): void {
    open.delete(path)
    notify("textDocument/didClose", { textDocument: { uri: pathToFileURL(path).href } })
  }

  return {
    show,
    refresh() {
      for (const path of [...open.keys()].reverse()) {
        try {
          show(path)
        } catch (error) {
          if (!TackleError.isInstance(error) && systemCode(error) === undefined) throw error
          close(path)
        }
      }
    },
    version: (path) => open.get(path)?.version ?? 0,
  }
}

function readDocument(path: string): { text: string; stats: Stats } {
  const descriptor = openPinned(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  try {
    const stats = fstatSync(descriptor)
    if (!stats.isFile()) throw new ServerAnswerError(`${path} is no file.`)
    if (stats.size > maxBytes)
      throw new ServerAnswerError(
        `${path} is too large for a language server (${stats.size} bytes). Use grep.`,
      )
    return { text: readFileSync(descriptor, "utf8"), stats }
  } finally {
    closeSync(descriptor)
  }
}
