import { pathToFileURL } from "node:url"
import type {
  CallHierarchyIncomingCall,
  CallHierarchyItem,
  CallHierarchyOutgoingCall,
  DocumentSymbol,
  Hover,
  Location,
  LocationLink,
  ServerCapabilities,
  SymbolInformation,
  WorkspaceSymbol,
} from "vscode-languageserver-protocol"
import { pathOfUri } from "../../lsp/uri.ts"
import type { ToolContext } from "../../tool/context.ts"
import { TackleError } from "../../util/errors.ts"
import type { Operation } from "../lsp.ts"
import { diagnosticFinding, type Finding, startOf } from "./finding.ts"
import { hoverText } from "./hover-text.ts"
import { renderFindings, type ShownFindings } from "./render-findings.ts"
import { symbolKind } from "./symbol-kind.ts"

/** A question of the model. Line and character from 1; the path absolute, links followed. */
export interface LanguageCall {
  operation: Operation
  path: string
  line?: number | undefined
  character?: number | undefined
  query?: string | undefined
}

type Context = Pick<ToolContext, "abort" | "directory" | "worktree" | "mayRead"> & {
  lsp: NonNullable<ToolContext["lsp"]>
}

/** The model's question in the protocol's words, and the answer in the model's. Throws what the server throws. */
export async function runOperation(call: LanguageCall, ctx: Context): Promise<ShownFindings> {
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
    case "goToDefinition":
      return show(
        await locate("textDocument/definition", "definitionProvider"),
        `No definition found. ${here}`,
      )
    case "goToImplementation": {
      const found = await locate("textDocument/implementation", "implementationProvider")
      return show(found, `No implementation found. ${here}`)
    }
    case "findReferences": {
      const context = { includeDeclaration: true }
      const found = await locate("textDocument/references", "referencesProvider", { context })
      return show(byPlace(found), `No references found. ${here}`)
    }
    case "hover": {
      const params = { textDocument, position: positionOf(call) }
      const text = hoverText(await ask<Hover>("textDocument/hover", "hoverProvider", params))
      return {
        output: text || `The server has no information about this position. ${here}`,
        count: text ? 1 : 0,
        withheld: 0,
      }
    }
    case "documentSymbol": {
      const symbols = await ask<(DocumentSymbol | SymbolInformation)[]>(
        "textDocument/documentSymbol",
        "documentSymbolProvider",
        { textDocument },
      )
      return show(
        inOrder(symbols ?? []).flatMap((symbol) => outline(symbol, call.path)),
        "The file has no symbols.",
      )
    }
    case "workspaceSymbol": {
      const { query = "" } = call
      const symbols = await ask<(WorkspaceSymbol | SymbolInformation)[]>(
        "workspace/symbol",
        "workspaceSymbolProvider",
        { query },
      )
      return show((symbols ?? []).flatMap(symbolFinding), `No symbol of the project matches "${query}".`)
    }
    case "prepareCallHierarchy":
      return show(
        (await prepare()).flatMap((item) => itemFinding(item)),
        `No function found. ${here}`,
      )
    case "incomingCalls": {
      const found = await calls<CallHierarchyIncomingCall>("callHierarchy/incomingCalls")
      return show(byPlace(found.flatMap(callerFindings)), `No callers found. ${here}`)
    }
    case "outgoingCalls": {
      const found = await calls<CallHierarchyOutgoingCall>("callHierarchy/outgoingCalls")
      return show(
        found.flatMap(({ to }) => itemFinding(to)),
        `No outgoing calls found. ${here}`,
      )
    }
    case "diagnostics": {
      const found = await ctx.lsp.diagnose(call.path, ctx.abort)
      if (!found)
        return {
          output: "The server has not reported on this file yet. Try again later.",
          count: 0,
          withheld: 0,
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

function locationFindings(found: Location | (Location | LocationLink)[] | null): Finding[] {
  const list = Array.isArray(found) ? found : found ? [found] : []
  return list.flatMap((location) =>
    "targetUri" in location
      ? at(location.targetUri, location.targetSelectionRange)
      : at(location.uri, location.range),
  )
}

/** File by file, from the top to the bottom. */
function byPlace(findings: readonly Finding[]): Finding[] {
  return findings.toSorted((a, b) => {
    if (a.path !== b.path) return a.path < b.path ? -1 : 1
    return a.line - b.line || a.character - b.character
  })
}

/** Nothing for what is no file, such as the text inside an archive. */
function at(uri: string, range: Location["range"], text?: string): Finding[] {
  const path = pathOfUri(uri)
  if (path === undefined) return []
  return [{ path, ...startOf(range), ...(text === undefined ? {} : { text }) }]
}

function outline(symbol: DocumentSymbol | SymbolInformation, path: string, depth = 0): Finding[] {
  if ("location" in symbol) return symbolFinding(symbol)
  const text = `${symbolKind(symbol.kind)} ${symbol.name}`
  const own = { path, ...startOf(symbol.selectionRange), text, depth }
  return [own, ...inOrder(symbol.children ?? []).flatMap((child) => outline(child, path, depth + 1))]
}

/** As they stand in the file: some servers sort by name. */
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
  const range = "range" in location ? location.range : firstPlace
  const inside = containerName ? ` in ${containerName}` : ""
  return at(location.uri, range, `${symbolKind(kind)} ${name}${inside}`)
}

/** Servers may leave out where in the file a symbol is. */
const firstPlace = { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } }

function itemFinding({ uri, kind, name, selectionRange }: CallHierarchyItem): Finding[] {
  return at(uri, selectionRange, `${symbolKind(kind)} ${name}`)
}

/** Each call by itself, named by the function that it stands in. */
function callerFindings({ from, fromRanges }: CallHierarchyIncomingCall): Finding[] {
  return fromRanges.flatMap((range) => at(from.uri, range, `in ${symbolKind(from.kind)} ${from.name}`))
}
