import type { Diagnostic, ServerCapabilities } from "vscode-languageserver-protocol"
import { orAbort, within } from "../util/abort.ts"
import { isRecord } from "../util/json.ts"
import { pathOfUri } from "./uri.ts"

/** Collects the diagnostics that a server publishes without a request. */
export interface PublishedDiagnostics {
  /** Receives the params of `textDocument/publishDiagnostics`. */
  receive(params: unknown): void
  /** Returns the number of reports received for the file. */
  count(path: string): number
  /**
   * Waits for a new report, and then until no more reports arrive for `quietMs`. Returns undefined if no report arrives
   * within `ms`. Rejects with the error of `abortedError` if the signal aborts.
   */
  next(path: string, wait: DiagnosticWait): Promise<Diagnostic[] | undefined>
}

/** Identifies the new reports, and limits the wait for them. */
export interface DiagnosticWait {
  /** Number of reports that are not new, as returned by `count`. */
  since: number
  /**
   * Time in milliseconds to wait for another report. If none arrives, the latest report is final. Servers publish
   * several reports for a file.
   */
  quietMs: number
  /** Total time limit in milliseconds, including the quiet time. */
  ms: number
  signal: AbortSignal
  /** Current version of the file. Reports that state an earlier version are ignored. */
  version: number
}

interface Published {
  count: number
  diagnostics: Diagnostic[]
  version: number
}

/** Creates an empty collection of diagnostics. */
export function createPublishedDiagnostics(): PublishedDiagnostics {
  const published = new Map<string, Published>()
  const waiting = new Set<() => void>()

  /** Resolves with true at the next report, and with undefined after `ms` milliseconds. */
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
      const deadline = performance.now() + ms
      let seen = since
      let quietSince: number | undefined
      for (;;) {
        const latest = published.get(path)
        if (latest && latest.count > seen && latest.version >= version) {
          seen = latest.count
          quietSince = performance.now()
        }
        const end = Math.min(deadline, quietSince === undefined ? deadline : quietSince + quietMs)
        const left = end - performance.now()
        if (left <= 0) return quietSince === undefined ? undefined : latest?.diagnostics
        await arrival(left, signal)
      }
    },
  }
}

/** Command with which `typescript-language-server` and `vtsls` forward a request to TypeScript. */
const typescriptCommand = "typescript.tsserverRequest"

/**
 * Returns true if TypeScript diagnostics can be requested from a server that otherwise only publishes them. Such a
 * server publishes nothing while a file has no errors, so waiting would use the full time limit after each edit.
 */
export function canAskTypescript({ executeCommandProvider }: ServerCapabilities): boolean {
  return executeCommandProvider?.commands.includes(typescriptCommand) ?? false
}

/**
 * Requests syntactic and semantic diagnostics. Returns undefined if TypeScript does not answer. If `execute` fails,
 * rejects with its error.
 */
export async function askTypescript(
  path: string,
  execute: (params: { command: string; arguments: unknown[] }) => Promise<unknown>,
): Promise<Diagnostic[] | undefined> {
  const answers = await Promise.all(
    ["syntacticDiagnosticsSync", "semanticDiagnosticsSync"].map((request) =>
      // Pass a plain path, because `vtsls` does not convert a URI here.
      execute({
        command: typescriptCommand,
        arguments: [request, { file: path, includeLinePosition: true }],
      }),
    ),
  )
  const bodies = answers.map((answer) => (isRecord(answer) ? answer.body : undefined))
  return bodies.every((body) => Array.isArray(body)) ? bodies.flatMap(diagnosticsOf) : undefined
}

function diagnosticsOf(body: readonly unknown[]): Diagnostic[] {
  return body.flatMap((found: unknown) => {
    if (!isRecord(found) || typeof found.message !== "string") return []
    const diagnostic: Diagnostic = {
      range: { start: positionOf(found.startLocation), end: positionOf(found.endLocation) },
      severity: found.category === "error" ? 1 : found.category === "warning" ? 2 : 3,
      message: found.message,
      source: "typescript",
    }
    if (typeof found.code === "number") diagnostic.code = found.code
    return diagnostic
  })
}

/** Converts a TypeScript location, whose lines and columns start at 1. */
function positionOf(location: unknown): { line: number; character: number } {
  const { line, offset } = isRecord(location) ? location : {}
  return {
    line: typeof line === "number" ? line - 1 : 0,
    character: typeof offset === "number" ? offset - 1 : 0,
  }
}
