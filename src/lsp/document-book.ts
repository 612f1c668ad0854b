import { readFileSync, statSync } from "node:fs"
import { pathToFileURL } from "node:url"
import { systemCode } from "../util/errors.ts"
import { ServerAnswerError } from "./errors.ts"
import { languageOf } from "./servers.ts"

/** The files that a server has open: what it knows of them is what is on disk. */
export interface DocumentBook {
  /**
   * Opens the file, or tells the server what it holds now. Throws what the system throws, and `ServerAnswerError` for a
   * file that is too large.
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

export interface DocumentBookOptions {
  notify(method: string, params: unknown): void
  /** Called before the server is told what a file holds. */
  onShow(path: string): void
}

/** Files are read at once, not in turns: no change can then overtake another. */
export function createDocumentBook({ notify, onShow }: DocumentBookOptions): DocumentBook {
  const open = new Map<string, OpenDocument>()

  function show(path: string): void {
    const before = open.get(path)
    const { ino, size, mtimeMs } = statSync(path)
    if (before && before.ino === ino && before.size === size && before.mtimeMs === mtimeMs) {
      open.delete(path)
      open.set(path, before)
      return
    }
    if (size > maxBytes) {
      throw new ServerAnswerError(`${path} is too large for a language server (${size} bytes). Use grep.`)
    }
    const text = readFileSync(path, "utf8")
    const version = (before?.version ?? 0) + 1
    open.delete(path)
    open.set(path, { version, ino, size, mtimeMs })
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
          if (!(error instanceof ServerAnswerError) && systemCode(error) === undefined) throw error
          close(path)
        }
      }
    },
    version: (path) => open.get(path)?.version ?? 0,
  }
}
