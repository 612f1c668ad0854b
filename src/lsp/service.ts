import type { Diagnostic, ServerCapabilities } from "vscode-languageserver-protocol"
import type { RecordTree } from "../util/process.ts"
import type { LspConfig } from "./config.ts"

/** Language servers, each started when it is first needed. Paths absolute, links followed. */
export interface LanguageService {
  /** The server that answers for the file. Throws `NoServerError` where there is none. */
  find(path: string): Promise<FoundServer>
  /**
   * Starts the server where need be, and again where it crashed; then asks it. Throws `NoServerError`, and what
   * `Connection.request` throws.
   */
  ask<T>(question: LanguageQuestion): Promise<T>
  /** What is wrong in the file. Undefined: the server said nothing in time. Throws like `ask`. */
  diagnose(path: string, signal: AbortSignal): Promise<Diagnostic[] | undefined>
  /**
   * Tells the running servers of changed files, and resolves with what they then find wrong, within
   * `editMs`: files for which nothing came are left out. Starts nothing and never rejects.
   */
  changed(changes: readonly ChangedPath[], signal: AbortSignal): Promise<FileDiagnostics[]>
  /** Ends every server. */
  close(): Promise<void>
}

/** Which server answers for a file, and whether it runs. */
export interface FoundServer {
  id: string
  /** The program's absolute path. */
  program: string
  /** The directory that it works on. */
  root: string
  /** True: it was started before, by whomever. */
  started: boolean
}

/** A request of the protocol, to the server that answers for `path`. */
export interface LanguageQuestion {
  path: string
  method: string
  params: unknown
  /** What the server must be able to do. Undefined: whatever it says. */
  needs: keyof ServerCapabilities
  signal: AbortSignal
}

/** A file whose change is on disk already. */
export interface ChangedPath {
  path: string
  kind: "created" | "changed" | "deleted"
}

/** All that a server finds wrong in one file. Empty: it looked, and found nothing. */
export interface FileDiagnostics {
  path: string
  diagnostics: Diagnostic[]
}

/** Which servers there are, and what they may run. */
export interface LanguageServiceOptions {
  /** `lsp` of the config. Default: the known servers, as far as they are installed. */
  config?: LspConfig
  /** Absolute, links followed. */
  worktree: string
  /** True: programs that lie in the worktree may be run. */
  trusted: boolean
  /** What servers get, `PATH` among it. */
  environment: Readonly<Record<string, string | undefined>>
  /** Writes each server down while it runs, so that it is ended where this process is killed. */
  record?: RecordTree
  /** What is not named is as `pool.ts` has it. */
  limits?: Partial<LanguageLimits>
}

/** How long is waited, in milliseconds. */
export interface LanguageLimits {
  /** For a server to say its first word. */
  startMs: number
  /** For an answer. */
  requestMs: number
  /** For the diagnostics of a file that was asked about. */
  diagnoseMs: number
  /** For the diagnostics of a file that was changed: the result of the edit waits for them. */
  editMs: number
}

/** Language servers of which nothing is loaded before the first question. */
export function createLanguageService(options: LanguageServiceOptions): LanguageService {
  let opened: Promise<LanguageService> | undefined
  const open = () => {
    opened ??= import("./pool.ts").then(({ createServerPool }) => createServerPool(options))
    return opened
  }
  return {
    find: async (path) => (await open()).find(path),
    ask: async (question) => (await open()).ask(question),
    diagnose: async (path, signal) => (await open()).diagnose(path, signal),
    changed: async (changes, signal) => (opened ? (await opened).changed(changes, signal) : []),
    async close() {
      if (opened) await (await opened).close()
    },
  }
}
