import * as z from "zod"
import { pinnedPatterns, statPath } from "../files/open-file.ts"
import { showName } from "../files/show-name.ts"
import type { ToolContext } from "../tool/context.ts"
import { define } from "../tool/tool.ts"
import { TackleError } from "../util/errors.ts"
import { readText } from "../util/file-system.ts"
import { displayPath, realPath, resolvePath } from "../util/paths.ts"

/** What can be asked. Models know the names from other agents. */
export const operations = [
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
/** One of the {@link operations}. */
export type Operation = (typeof operations)[number]

const parameters = z.lazy(() =>
  z.object({
    operation: z.enum(operations).describe("Query to run"),
    filePath: z.string().min(1).describe("File, absolute or relative"),
    line: z.number().int().positive().optional().describe("Line of the name, from 1"),
    character: z.number().int().positive().optional().describe("Column of the name, from 1"),
    query: z.string().optional().describe("For workspaceSymbol: all or part of the name"),
  }),
)

/** Asks the language server of a file. Starting one asks for more than asking one. */
export const lspTool = define("lsp", {
  description: readText(new URL("./lsp.md", import.meta.url)),
  parameters,
  // It may start a program, and must not ask about files that are being changed.
  access: "execute",
  asksFirst: true,
  async execute(args, ctx) {
    const path = resolvePath(args.filePath, ctx.directory)
    const real = realPath(path)
    const service = serviceOf(ctx)
    await ctx.ask({
      permission: "read",
      patterns: pinnedPatterns(path, real),
      always: ["*"],
      metadata: { filePath: path },
    })
    if (!(await statPath(real, "File")).isFile())
      throw new TackleError(`${showName(path)} is a directory. Pass a file.`, {
        code: "lsp.directory",
        recoverable: true,
      })
    const server = await service.find(real)
    const patterns = [args.operation, ...(server.started ? [] : [`start ${server.id}`])]
    await ctx.ask({
      permission: "lsp",
      patterns,
      always: patterns,
      metadata: {
        filePath: path,
        operation: args.operation,
        ...(server.started ? {} : { command: server.program, workdir: server.root, reasons: [startNote] }),
      },
    })

    const { runOperation } = await import("./language/run-operation.ts")
    const { output, count, withheld } = await runOperation({ ...args, path: real }, { ...ctx, lsp: service })
    const title = showName(displayPath(path, ctx.worktree))
    const place = args.line === undefined ? "" : `:${args.line}`
    return {
      title: `${args.operation} ${title}${place}`,
      output,
      metadata: { operation: args.operation, server: server.id, results: count, withheld },
    }
  },
})

const startNote =
  "The server runs outside the sandbox and may run code of the project, such as its build and plugins."

function serviceOf(ctx: ToolContext) {
  if (ctx.lsp) return ctx.lsp
  throw new TackleError("Language servers are not available here. Use grep and read.", {
    code: "lsp.unavailable",
    recoverable: true,
  })
}
