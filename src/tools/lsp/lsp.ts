import { pathToFileURL } from "node:url"
import type {
  CallHierarchyIncomingCall,
  CallHierarchyItem,
  CallHierarchyOutgoingCall,
  DocumentSymbol,
  Hover,
  Location,
  LocationLink,
  MarkedString,
  MarkupContent,
  ServerCapabilities,
  SymbolInformation,
  WorkspaceSymbol,
} from "vscode-languageserver-protocol"
import * as z from "zod"
import { pinnedPatterns, statPath } from "../../files/open-file.ts"
import { showName } from "../../files/show-name.ts"
import { pathOfUri } from "../../lsp/uri.ts"
import type { ToolContext } from "../../tool/context.ts"
import { define } from "../../tool/tool.ts"
import { TackleError } from "../../util/errors.ts"
import { readText } from "../../util/file-system.ts"
import { displayPath, realPath, resolvePath } from "../../util/paths.ts"
import {
  diagnosticFinding,
  type Finding,
  type RenderedFindings,
  renderFindings,
  startOf,
} from "./findings.ts"

/** Names of the queries. Models know these names from other agents. */
const operations = [
  "goToDefinition",
  "findReferences",
  "hover",
  "documentSymbol",
  "workspaceSymbol",
  "goToImplementation",
  "prepareCallHierarchy",
  "incomingCalls",
  "outgoingCalls",
  "diagnostics",
] as const

const parameters = z.lazy(() =>
  z.object({
    operation: z.enum(operations).describe("Query to run"),
    filePath: z.string().min(1).describe("File, absolute or relative"),
    line: z.number().int().positive().optional().describe("Line of the name, from 1"),
    character: z.number().int().positive().optional().describe("Column of the name, from 1"),
    query: z.string().optional().describe("For workspaceSymbol: all or part of the name"),
  }),
)

/**
 * Queries the language server for a file. The permission request contains the operation and, if the call starts the
 * server, the server's id.
 */
export const lspTool = define("lsp", {
  description: readText(new URL("./lsp.md", import.meta.url)),
  parameters,
  // The tool may start a program, and must not query files while they are changing.
  access: "execute",
  asksFirst: true,
  async execute(args, ctx) {
    const path = resolvePath(args.filePath, ctx.directory)
    const real = realPath(path)
    const { lsp } = ctx
    if (!lsp)
      throw new TackleError("Language servers are not available here. Use grep and read.", {
        code: "lsp.unavailable",
        recoverable: true,
      })
    await ctx.ask({
      permission: "read",
      patterns: pinnedPatterns(path, real),
      always: ["*"],
      metadata: { filePath: path },
    })
    if (!(await statPath(real, "File")).isFile())
      throw new TackleError(`${showName(path)} is a directory. Pass the path of a file.`, {
        code: "lsp.directory",
        recoverable: true,
      })
    const server = await lsp.find(real)
    const patterns = [args.operation, ...(server.started ? [] : [`start ${server.id}`])]
    const start = { command: server.program, workdir: server.root, reasons: [startNote] }
    await ctx.ask({
      permission: "lsp",
      patterns,
      always: patterns,
      metadata: { filePath: path, operation: args.operation, ...(server.started ? {} : start) },
    })

    const { output, count, hidden } = await runOperation({ ...args, path: real }, { ...ctx, lsp })
    const title = showName(displayPath(path, ctx.worktree))
    const line = args.line === undefined ? "" : `:${args.line}`
    return {
      title: `${args.operation} ${title}${line}`,
      output,
      metadata: { operation: args.operation, server: server.id, results: count, hidden },
    }
  },
})

const startNote =
  "The server runs outside the sandbox and may run code from the project, such as its build and plugins."

/** A query. `path` is absolute with links resolved. `line` and `character` count from 1. */
interface LanguageCall {
  operation: (typeof operations)[number]
  path: string
  line?: number
  character?: number
  query?: string
}

type Context = Pick<ToolContext, "abort" | "directory" | "worktree" | "mayRead"> & {
  lsp: NonNullable<ToolContext["lsp"]>
}

/**
 * Sends the query to the server and renders its answer. If the server cannot answer, rejects with the server's error.
 */
async function runOperation(call: LanguageCall, ctx: Context): Promise<RenderedFindings> {
  const ask = <T>(method: string, needs: keyof ServerCapabilities, params: object) =>
    ctx.lsp.ask<T | null>({ path: call.path, method, params, needs, signal: ctx.abort })
  const textDocument = { uri: pathToFileURL(call.path).href }
  const locate = async (method: string, needs: keyof ServerCapabilities, more: object = {}) => {
    const params = { textDocument, position: positionOf(call), ...more }
    return locationFindings(await ask<Location | Location[] | LocationLink[]>(method, needs, params))
  }
  const prepare = async () => {
    const params = { textDocument, position: positionOf(call) }
    const needs = "callHierarchyProvider"
    return (await ask<CallHierarchyItem[]>("textDocument/prepareCallHierarchy", needs, params)) ?? []
  }
  const calls = async <T>(method: string): Promise<T[]> => {
    const items = await prepare()
    const answers = items.map((item) => ask<T[]>(method, "callHierarchyProvider", { item }))
    return (await Promise.all(answers)).flatMap((answer) => answer ?? [])
  }
  const show = (findings: Finding[], nothing: string) => renderFindings(findings, { ...ctx, nothing })
  const here = `Check that line ${call.line}, character ${call.character} is on a name.`

  switch (call.operation) {
    case "goToDefinition": {
      const found = await locate("textDocument/definition", "definitionProvider")
      return show(found, `No definition found. ${here}`)
    }
    case "goToImplementation": {
      const found = await locate("textDocument/implementation", "implementationProvider")
      return show(found, `No implementation found. ${here}`)
    }
    case "findReferences": {
      const context = { includeDeclaration: true }
      const found = await locate("textDocument/references", "referencesProvider", { context })
      return show(byPosition(found), `No references found. ${here}`)
    }
    case "hover": {
      const params = { textDocument, position: positionOf(call) }
      const text = hoverText(await ask<Hover>("textDocument/hover", "hoverProvider", params))
      const output = text || `The server has no information about this position. ${here}`
      return { output, count: text ? 1 : 0, hidden: 0 }
    }
    case "documentSymbol": {
      const symbols = await ask<(DocumentSymbol | SymbolInformation)[]>(
        "textDocument/documentSymbol",
        "documentSymbolProvider",
        { textDocument },
      )
      const found = inOrder(symbols ?? []).flatMap((symbol) => outline(symbol, call.path))
      return show(found, "The file has no symbols.")
    }
    case "workspaceSymbol": {
      const { query = "" } = call
      const symbols = await ask<(WorkspaceSymbol | SymbolInformation)[]>(
        "workspace/symbol",
        "workspaceSymbolProvider",
        { query },
      )
      return show((symbols ?? []).flatMap(symbolFinding), `No symbol in the project matches "${query}".`)
    }
    case "prepareCallHierarchy":
      return show((await prepare()).flatMap(itemFinding), `No function found. ${here}`)
    case "incomingCalls": {
      const found = await calls<CallHierarchyIncomingCall>("callHierarchy/incomingCalls")
      return show(byPosition(found.flatMap(callerFindings)), `No callers found. ${here}`)
    }
    case "outgoingCalls": {
      const found = await calls<CallHierarchyOutgoingCall>("callHierarchy/outgoingCalls")
      const callees = found.flatMap(({ to }) => itemFinding(to))
      return show(callees, `No outgoing calls found. ${here}`)
    }
    case "diagnostics": {
      const found = await ctx.lsp.diagnose(call.path, ctx.abort)
      if (!found) {
        const output = "The server has not reported on this file yet. Try again later."
        return { output, count: 0, hidden: 0 }
      }
      const bySeverity = found.toSorted((a, b) => (a.severity ?? 1) - (b.severity ?? 1))
      const findings = bySeverity.map((diagnostic) => diagnosticFinding(call.path, diagnostic))
      return show(findings, "No errors or warnings.")
    }
  }
}

function positionOf({ operation, line, character }: LanguageCall) {
  if (line !== undefined && character !== undefined) return { line: line - 1, character: character - 1 }
  throw new TackleError(`${operation} requires the line and character of a name, both counted from 1.`, {
    code: "lsp.position",
    recoverable: true,
  })
}

/** Returns the server's text as Markdown, or an empty string if the server has none. */
function hoverText(hover: Hover | null): string {
  if (!hover) return ""
  const contents = Array.isArray(hover.contents) ? hover.contents : [hover.contents]
  return contents.map(partText).join("\n\n").trim()
}

function partText(part: MarkupContent | MarkedString): string {
  if (typeof part === "string") return part
  return "language" in part ? `\`\`\`${part.language}\n${part.value}\n\`\`\`` : part.value
}

function locationFindings(found: Location | (Location | LocationLink)[] | null): Finding[] {
  const list = Array.isArray(found) ? found : found ? [found] : []
  return list.flatMap((location) =>
    "targetUri" in location
      ? at(location.targetUri, location.targetSelectionRange)
      : at(location.uri, location.range),
  )
}

/** Sorts findings by file, then by position. */
function byPosition(findings: readonly Finding[]): Finding[] {
  return findings.toSorted((a, b) => {
    if (a.path !== b.path) return a.path < b.path ? -1 : 1
    return a.line - b.line || a.character - b.character
  })
}

/**
 * Returns one finding, or an empty array if the URI does not refer to a file, for example if it refers to an entry in
 * an archive.
 */
function at(uri: string, range: Location["range"], text?: string): Finding[] {
  const path = pathOfUri(uri)
  return path === undefined ? [] : [{ path, ...startOf(range), text }]
}

function outline(symbol: DocumentSymbol | SymbolInformation, path: string, depth = 0): Finding[] {
  if ("location" in symbol) return symbolFinding(symbol)
  const text = `${symbolKind(symbol.kind)} ${symbol.name}`
  const own = { path, ...startOf(symbol.selectionRange), text, depth }
  return [own, ...inOrder(symbol.children ?? []).flatMap((child) => outline(child, path, depth + 1))]
}

/** Sorts symbols by position, because some servers sort them by name. */
function inOrder<T extends DocumentSymbol | SymbolInformation>(symbols: readonly T[]): T[] {
  const start = (symbol: T) => ("location" in symbol ? symbol.location.range : symbol.range).start
  return symbols.toSorted((a, b) => start(a).line - start(b).line || start(a).character - start(b).character)
}

function symbolFinding({
  kind,
  name,
  containerName,
  location,
}: WorkspaceSymbol | SymbolInformation): Finding[] {
  const range = "range" in location ? location.range : startOfFile
  const inside = containerName ? ` in ${containerName}` : ""
  return at(location.uri, range, `${symbolKind(kind)} ${name}${inside}`)
}

/** The range of a symbol for which the server reports no range. */
const startOfFile = { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } }

function itemFinding({ uri, kind, name, selectionRange }: CallHierarchyItem): Finding[] {
  return at(uri, selectionRange, `${symbolKind(kind)} ${name}`)
}

/** Returns one finding per call. The text of each finding contains the name of the calling function. */
function callerFindings({ from, fromRanges }: CallHierarchyIncomingCall): Finding[] {
  return fromRanges.flatMap((range) => at(from.uri, range, `in ${symbolKind(from.kind)} ${from.name}`))
}

function symbolKind(kind: number): string {
  return symbolKinds[kind - 1] ?? "symbol"
}

/** Symbol kinds in the order of the protocol, which counts from 1. */
const symbolKinds =
  "file module namespace package class method property field constructor enum interface function variable constant string number boolean array object key null enum-member struct event operator type-parameter".split(
    " ",
  )
