import { basename } from "node:path"
import { pathToFileURL } from "node:url"
import type {
  ClientCapabilities,
  Diagnostic,
  DocumentDiagnosticReport,
  InitializeParams,
  InitializeResult,
  ServerCapabilities,
} from "vscode-languageserver-protocol"
import { TimeoutError } from "../util/abort.ts"
import { isRecord } from "../util/json.ts"
import type { RecordTree } from "../util/process.ts"
import { type Connection, openConnection, ServerAnswerError } from "./connection.ts"
import { askTypescript, canAskTypescript, createPublishedDiagnostics } from "./diagnostics.ts"
import { createOpenDocuments } from "./open-documents.ts"
import type { LanguageServer } from "./servers.ts"

/** A client of one running server for one root directory. */
export interface LanguageClient {
  readonly capabilities: ServerCapabilities
  /**
   * Sends all changed files, opens `path` and sends the request. Rejects with the errors of `Connection.request` and
   * `OpenDocuments.show`.
   */
  request<T>(path: string, method: string, params: unknown, limit: Limit): Promise<T>
  /**
   * Returns the diagnostics for the file on disk, or undefined if the server publishes none in time. Rejects with the
   * same errors as `request`.
   */
  diagnostics(path: string, limit: Limit & { quietMs: number }): Promise<Diagnostic[] | undefined>
  /** Notifies the server that a file was created, changed or deleted. The file does not need to be open. */
  changed(path: string, kind: FileChange): void
  alive(): boolean
  end(): Promise<void>
}

/** Limits for waiting for an answer. The wait ends after `ms` milliseconds or when `signal` aborts. */
export interface Limit {
  ms: number
  signal: AbortSignal
}

/** A change to a file. A move is reported as two changes: deleted, and created or changed. */
export type FileChange = "created" | "changed" | "deleted"

/** The protocol's values for the change types. */
const changeTypes: Record<FileChange, number> = { created: 1, changed: 2, deleted: 3 }

/** Number of consecutive timeouts without any data from the server after which the server is considered hung. */
const silentLimit = 2

/**
 * Starts and initializes the server. Rejects with the errors of `openConnection` and `Connection.request`. If the
 * initialization fails, ends the server's process before it rejects.
 */
export async function startClient(options: {
  server: LanguageServer
  argv: readonly [string, ...string[]]
  root: string
  env: Readonly<Record<string, string | undefined>>
  record: RecordTree | undefined
  limit: Limit
}): Promise<LanguageClient> {
  const { server, root } = options
  const published = createPublishedDiagnostics()
  const connection = await openConnection({
    name: server.id,
    argv: options.argv,
    cwd: root,
    env: options.env,
    record: options.record,
    onNotification(method, params) {
      if (method === "textDocument/publishDiagnostics") published.receive(params)
    },
    onRequest: (method, params) => answerServer(method, params, { server, root }),
  })
  let capabilities: ServerCapabilities
  try {
    capabilities = await initialize(connection, { server, root }, options.limit)
  } catch (error) {
    await connection.end()
    throw error
  }
  /**
   * For each file, the number of reports that the server sent before the server received the file's current content.
   */
  const outdated = new Map<string, number>()
  const documents = createOpenDocuments({
    notify: connection.notify,
    onShow: (path) => outdated.set(path, published.count(path)),
  })
  let silent = 0

  async function send<T>(method: string, params: unknown, limit: Limit): Promise<T> {
    const before = connection.received()
    try {
      const answer = await connection.request<T>(method, params, limit)
      silent = 0
      return answer
    } catch (error) {
      silent = error instanceof TimeoutError && connection.received() === before ? silent + 1 : 0
      if (silent >= silentLimit) await connection.end()
      throw error
    }
  }

  async function pull(path: string, limit: Limit): Promise<Diagnostic[]> {
    const textDocument = { uri: pathToFileURL(path).href }
    // A timeout here does not count as silence, because the limit after an edit is short and the server may be busy.
    const report = await connection.request<DocumentDiagnosticReport>(
      "textDocument/diagnostic",
      { textDocument },
      limit,
    )
    return report.kind === "full" ? report.items : []
  }

  return {
    capabilities,
    async request(path, method, params, limit) {
      documents.refresh()
      documents.show(path)
      return send(method, params, limit)
    },
    async diagnostics(path, limit) {
      documents.refresh()
      documents.show(path)
      if (capabilities.diagnosticProvider) return pull(path, limit)
      if (canAskTypescript(capabilities)) {
        const answer = await askTypescript(path, (params) =>
          connection.request("workspace/executeCommand", params, limit),
        )
        if (answer) return answer
      }
      const since = outdated.get(path) ?? 0
      const signal = AbortSignal.any([limit.signal, connection.gone])
      return published.next(path, { ...limit, signal, since, version: documents.version(path) })
    },
    changed(path, kind) {
      const change = { uri: pathToFileURL(path).href, type: changeTypes[kind] }
      connection.notify("workspace/didChangeWatchedFiles", { changes: [change] })
    },
    alive: connection.alive,
    end: connection.end,
  }
}

async function initialize(
  connection: Connection,
  { server, root }: { server: LanguageServer; root: string },
  limit: Limit,
): Promise<ServerCapabilities> {
  const params: InitializeParams = {
    processId: process.pid,
    clientInfo: { name: "tackle" },
    rootUri: pathToFileURL(root).href,
    workspaceFolders: [folderOf(root)],
    capabilities: clientCapabilities,
    initializationOptions: server.initialization,
  }
  const result = await connection.request<InitializeResult>("initialize", params, limit)
  if (!isRecord(result?.capabilities))
    throw new ServerAnswerError(
      `${server.id} did not report its capabilities. It may not be a language server.`,
    )
  connection.notify("initialized", {})
  connection.notify("workspace/didChangeConfiguration", { settings: server.initialization })
  return result.capabilities
}

/** Capabilities of the client. All servers support positions in UTF-16 units. */
const clientCapabilities: ClientCapabilities = {
  general: { positionEncodings: ["utf-16"] },
  workspace: {
    workspaceFolders: true,
    configuration: true,
    didChangeWatchedFiles: { dynamicRegistration: false },
    symbol: {},
  },
  window: { workDoneProgress: true },
  textDocument: {
    synchronization: {},
    definition: { linkSupport: true },
    implementation: { linkSupport: true },
    references: {},
    hover: { contentFormat: ["markdown", "plaintext"] },
    documentSymbol: { hierarchicalDocumentSymbolSupport: true },
    callHierarchy: {},
    diagnostic: {},
    publishDiagnostics: { versionSupport: true },
  },
}

/** Handles requests from the server. The server cannot change files or show messages. */
function answerServer(
  method: string,
  params: unknown,
  { server, root }: { server: LanguageServer; root: string },
): unknown {
  switch (method) {
    case "workspace/configuration": {
      const items = isRecord(params) && Array.isArray(params.items) ? params.items : []
      return items.map((item) => settingAt(server.initialization, isRecord(item) ? item.section : undefined))
    }
    case "workspace/workspaceFolders":
      return [folderOf(root)]
    case "workspace/applyEdit":
      return { applied: false, failureReason: "only the edit tool changes files" }
    case "window/showDocument":
      return { success: false }
    case "window/workDoneProgress/create":
    case "window/showMessageRequest":
    case "client/registerCapability":
    case "client/unregisterCapability":
    case "workspace/diagnostic/refresh":
      return null
    default:
      return undefined
  }
}

/**
 * Returns the settings under a dotted name, such as `python.analysis`. Returns all settings if no name is given, and
 * null if the name is not set.
 */
function settingAt(settings: Readonly<Record<string, unknown>>, section: unknown): unknown {
  if (typeof section !== "string" || section === "") return settings
  let value: unknown = settings
  for (const key of section.split("."))
    value = isRecord(value) && Object.hasOwn(value, key) ? value[key] : null
  return value
}

function folderOf(root: string) {
  return { uri: pathToFileURL(root).href, name: basename(root) }
}
