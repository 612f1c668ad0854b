import type { Diagnostic, ServerCapabilities } from "vscode-languageserver-protocol"
import { isRecord } from "../util/json.ts"

/** The command of `typescript-language-server` and `vtsls` that hands a request on to TypeScript itself. */
const command = "typescript.tsserverRequest"

/**
 * True where diagnostics can be asked for though the server only publishes them. It publishes nothing for a file that was
 * clean and still is: whoever waited for that would wait in vain at every edit that breaks nothing.
 */
export function canAskTypescript({ executeCommandProvider }: ServerCapabilities): boolean {
  return executeCommandProvider?.commands.includes(command) ?? false
}

/**
 * Asks for what keeps the file from being right TypeScript: wrong syntax and wrong types. Undefined where TypeScript gave
 * no answer, which is not to say that nothing is wrong. Rejects as `execute` does.
 */
export async function askTypescript(
  path: string,
  execute: (params: { command: string; arguments: unknown[] }) => Promise<unknown>,
): Promise<Diagnostic[] | undefined> {
  const answers = await Promise.all(
    ["syntacticDiagnosticsSync", "semanticDiagnosticsSync"].map((request) =>
      // Both servers take a plain path; of a URI `vtsls` makes no file that TypeScript knows.
      execute({ command, arguments: [request, { file: path, includeLinePosition: true }] }),
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

/** TypeScript counts both from 1. */
function positionOf(location: unknown): { line: number; character: number } {
  const { line, offset } = isRecord(location) ? location : {}
  return {
    line: typeof line === "number" ? line - 1 : 0,
    character: typeof offset === "number" ? offset - 1 : 0,
  }
}
