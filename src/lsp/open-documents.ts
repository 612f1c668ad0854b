import { closeSync, constants, fstatSync, readFileSync, type Stats, statSync } from "node:fs"
import { pathToFileURL } from "node:url"
import { systemCode, TackleError } from "../util/errors.ts"
import { openPinned } from "../util/pinned-path.ts"
import { ServerAnswerError } from "./connection.ts"
import { languageOf } from "./servers.ts"

/** The files that a server has open. `show` and `refresh` send the content of a file again if it changed on disk. */
export interface OpenDocuments {
  /**
   * Opens the file. If the file is already open and has changed, sends its current content. Throws `MovedPathError` if
   * the path contains a link, `ServerAnswerError` if the path is not a file or the file is too large, and system errors
   * if the file cannot be read.
   */
  show(path: string): void
  /** Sends the content of all open files that changed on disk, and closes files that can no longer be sent. */
  refresh(): void
  /** Returns the file version that the server has, or 0 if the file is not open. */
  version(path: string): number
}

/**
 * Maximum size of a file that is sent, in bytes. Servers keep several copies of a file and stop processing larger
 * files.
 */
const maxBytes = 4 * 1024 * 1024

/** Maximum number of open files. The least recently used file is closed first. */
const maxOpen = 64

interface OpenDocument {
  version: number
  ino: number
  size: number
  mtimeMs: number
}

/** Creates an empty set of open files. Reads files synchronously, so that changes are sent in order. */
export function createOpenDocuments({
  notify,
  onShow,
}: {
  notify(method: string, params: unknown): void
  /** Called with the path of a file before its content is sent to the server. */
  onShow(path: string): void
}): OpenDocuments {
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
      // Keeps the order of use, because `show` moves each file to the end.
      for (const path of [...open.keys()]) {
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
    if (!stats.isFile()) throw new ServerAnswerError(`${path} is not a file.`)
    if (stats.size > maxBytes)
      throw new ServerAnswerError(
        `${path} is too large for a language server (${stats.size} bytes). Use grep.`,
      )
    return { text: readFileSync(descriptor, "utf8"), stats }
  } finally {
    closeSync(descriptor)
  }
}
