import type { Diagnostic } from "vscode-languageserver-protocol"
import { orAbort, within } from "../util/abort.ts"
import { isRecord } from "../util/json.ts"
import { pathOfUri } from "./uri.ts"

/** What a server found out about files by itself, without being asked. */
export interface DiagnosticBook {
  /** Takes the params of `textDocument/publishDiagnostics`. */
  receive(params: unknown): void
  /** How often something came for the file. */
  count(path: string): number
  /**
   * What holds for the file once more came than `since`, and nothing more for `quietMs`. Undefined: nothing came within
   * `ms`. Rejects with the signal's reason.
   */
  next(path: string, wait: DiagnosticWait): Promise<Diagnostic[] | undefined>
}

/** Which diagnostics are news, and how long they are waited for. */
export interface DiagnosticWait {
  /** The `count` up to which all is outdated: only what comes after it is news. */
  since: number
  /** Servers publish in several goes: the last is the one after which nothing comes for so many milliseconds. */
  quietMs: number
  /** Milliseconds for all of it, the quiet time included. */
  ms: number
  signal: AbortSignal
  /** What was published for an earlier version of the file does not count, where the server says so. */
  version: number
}

interface Published {
  count: number
  diagnostics: Diagnostic[]
  version: number
}

/** An empty book. */
export function createDiagnosticBook(): DiagnosticBook {
  const published = new Map<string, Published>()
  const waiting = new Set<() => void>()

  /** Resolves with true when something came, with undefined after `ms`. */
  async function arrival(ms: number, signal: AbortSignal): Promise<true | undefined> {
    const { promise, resolve } = Promise.withResolvers<true>()
    const wake = () => resolve(true)
    waiting.add(wake)
    try {
      return await orAbort(within(promise, ms), signal)
    } finally {
      waiting.delete(wake)
    }
  }

  return {
    receive(params) {
      if (!isRecord(params) || typeof params.uri !== "string" || !Array.isArray(params.diagnostics)) return
      const path = pathOfUri(params.uri)
      if (path === undefined) return
      const version = typeof params.version === "number" ? params.version : Number.POSITIVE_INFINITY
      const count = (published.get(path)?.count ?? 0) + 1
      published.set(path, { count, version, diagnostics: params.diagnostics })
      for (const wake of waiting) wake()
    },
    count: (path) => published.get(path)?.count ?? 0,
    async next(path, { since, quietMs, ms, signal, version }) {
      const deadline = Date.now() + ms
      let seen = since
      let quietSince: number | undefined
      for (;;) {
        const latest = published.get(path)
        if (latest && latest.count > seen && latest.version >= version) {
          seen = latest.count
          quietSince = Date.now()
        }
        const end = Math.min(deadline, quietSince === undefined ? deadline : quietSince + quietMs)
        const left = end - Date.now()
        if (left <= 0) return quietSince === undefined ? undefined : latest?.diagnostics
        await arrival(left, signal)
      }
    },
  }
}
