import type { Diagnostic, Range } from "vscode-languageserver-protocol"

/** One thing that a server found, before it is known whether it may be shown. */
export interface Finding {
  /** Absolute. */
  path: string
  /** Both from 1. */
  line: number
  character: number
  /** What there is to say; undefined: the line itself says it. */
  text?: string
  /** How deep it lies in what was named before it. */
  depth?: number
}

/** Where a range begins. */
export function startOf(range: Range): Pick<Finding, "line" | "character"> {
  return { line: range.start.line + 1, character: range.start.character + 1 }
}

/** A diagnostic in one line. */
export function diagnosticFinding(path: string, diagnostic: Diagnostic): Finding {
  const { severity = 1, code, range } = diagnostic
  const named = code === undefined ? "" : ` ${code}`
  const message = diagnosticMessage(diagnostic)
  return { path, ...startOf(range), text: `${severityNames[severity - 1] ?? "error"}${named}: ${message}` }
}

/** True for what keeps the code from working. Without a severity it is the reader's to judge: the worst is assumed. */
export function isError({ severity = 1 }: Diagnostic): boolean {
  return severity === 1
}

const severityNames = ["error", "warning", "information", "hint"]

function diagnosticMessage({ message }: Diagnostic): string {
  const text = typeof message === "string" ? message : message.value
  return text.trim().replaceAll(/\s*\n\s*/g, " / ")
}
