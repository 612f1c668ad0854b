import type { Diagnostic, ServerCapabilities } from "vscode-languageserver-protocol"
import { orAbort, within } from "../util/abort.ts"
import { isRecord } from "../util/json.ts"
import { pathOfUri } from "./uri.ts"

/** The diagnostics that a server publishes by itself. */
export interface PublishedDiagnostics {
  /** Takes the params of `textDocument/publishDiagnostics`. */
  receive(params: unknown): void
  /** Number of reports for the file. */
  count(path: string): number
  /**
   * Waits for a new report, and until no more arrive for `quietMs`. Undefined: none arrived within `ms`. Rejects with the
   * signal's reason.
   */
  next(path: string, wait: DiagnosticWait): Promise<Diagnostic[] | undefined>
}

/** Which reports are new, and how long to wait for them. */
export interface DiagnosticWait {
  /** A report is new if it comes after this `count`. */
  since: number
  /** Servers publish several times. A report is the last one if no other follows within this many milliseconds. */
  quietMs: number
  /** Total limit in milliseconds, including the quiet time. */
  ms: number
  signal: AbortSignal
  /** Reports for an earlier version of the file are ignored, if the server states the version. */
  version: number
}

interface Published {
  count: number
  diagnostics: Diagnostic[]
  version: number
}

/** Creates a store without reports. */
export function createPublishedDiagnostics(): PublishedDiagnostics {
  const published = new Map<string, Published>()
  const waiting = new Set<() => void>()

  /** Resolves with true at the next report, with undefined after `ms`. */
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

/** The command of `typescript-language-server` and `vtsls` that passes a request on to TypeScript. */
const typescriptCommand = "typescript.tsserverRequest"

/**
 * Returns true if TypeScript diagnostics can be requested although the server only publishes them. It publishes
 * nothing for a file that stays without errors, so waiting would use the full limit after each edit.
 */
export function canAskTypescript({ executeCommandProvider }: ServerCapabilities): boolean {
  return executeCommandProvider?.commands.includes(typescriptCommand) ?? false
}

/** Requests syntactic and semantic diagnostics. Undefined: TypeScript did not answer. Rejects as `execute` does. */
export async function askTypescript(
  path: string,
  execute: (params: { command: string; arguments: unknown[] }) => Promise<unknown>,
): Promise<Diagnostic[] | undefined> {
  const answers = await Promise.all(
    ["syntacticDiagnosticsSync", "semanticDiagnosticsSync"].map((request) =>
      // A plain path: `vtsls` does not map a URI to a file here.
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

/** TypeScript counts lines and columns from 1. */
function positionOf(location: unknown): { line: number; character: number } {
  const { line, offset } = isRecord(location) ? location : {}
  return {
    line: typeof line === "number" ? line - 1 : 0,
    character: typeof offset === "number" ? offset - 1 : 0,
  }
}
