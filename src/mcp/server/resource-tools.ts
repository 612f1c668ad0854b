import { basename } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server"
import * as z from "zod"
import type { Tackle } from "../../engine/tackle.ts"
import { fileKind, sampleBytes } from "../../files/file-kind.ts"
import { type OpenFile, openFile, pinnedPatterns, readChunks, readStart } from "../../files/open-file.ts"
import type { ToolContext } from "../../tool/context.ts"
import { define, type Info } from "../../tool/tool.ts"
import { UsageError } from "../../util/errors.ts"
import { realPath, resolvePath } from "../../util/paths.ts"
import { identityAt } from "../../util/pinned-path.ts"
import { readResourceID } from "../client/resources.ts"

/**
 * Maximum size of a file resource, in bytes. Resources are sent whole. A client can read larger files only with the
 * tool `read`.
 */
const maxFileBytes = 10 * 1024 * 1024

/**
 * Returns a whole file in `metadata.contents`. The id and arguments are those of the tool `read`, so that plugins see
 * a call to `read`.
 */
export const readWholeFile = define("read", {
  description: "Reads a whole file that a client requests as a resource.",
  parameters: z.object({ filePath: z.string() }),
  access: "read",
  async execute({ filePath }, ctx) {
    const path = resolvePath(filePath, ctx.directory)
    const real = linkTarget(path)
    const identity = identityAt(real)
    await askForFile(ctx, path, real)
    const file = await openFile(path, real, { identity })
    try {
      const contents = [{ uri: uriOfFile(path), ...(await contentOf(file, path, ctx.abort)) }]
      return { title: path, output: "", metadata: { contents } }
    } finally {
      file.close()
    }
  },
})

/** Returns a tool that watches a file. The id and arguments are those of the tool `read`. */
export function watchFile(start: (file: { path: string; real: string }) => void): Info {
  return define("read", {
    description: "Watches a file for a client.",
    parameters: z.object({ filePath: z.string() }),
    access: "read",
    async execute({ filePath }, ctx) {
      const path = resolvePath(filePath, ctx.directory)
      const real = linkTarget(path)
      await askForFile(ctx, path, real)
      start({ path, real })
      return { title: path, output: "" }
    },
  })
}

async function askForFile(ctx: Pick<ToolContext, "ask">, path: string, real: string): Promise<void> {
  await ctx.ask({
    permission: "read",
    patterns: pinnedPatterns(path, real),
    always: ["*"],
    metadata: { filePath: path },
  })
}

/**
 * Returns a tool that stores a resource from an upstream MCP server in `metadata.contents`. The tool asks for the same
 * permission as the model's tool with this id.
 */
export function readServerResource(tackle: Pick<Tackle, "readMcpResource">): Info {
  return define(readResourceID, {
    description: "Reads a resource from an MCP server for a client.",
    parameters: z.object({ server: z.string(), uri: z.string() }),
    access: "network",
    async execute({ server, uri }, ctx) {
      await askForResource(ctx, server, uri)
      const contents = await tackle.readMcpResource({ server, uri, signal: ctx.abort })
      return { title: `${server}: ${uri}`, output: "", metadata: { contents } }
    },
  })
}

/** Returns a tool that watches a resource on an upstream MCP server, like {@link watchFile}. */
export function watchServerResource(start: (signal: AbortSignal) => Promise<void>): Info {
  return define(readResourceID, {
    description: "Watches a resource on an MCP server for a client.",
    parameters: z.object({ server: z.string(), uri: z.string() }),
    access: "network",
    async execute({ server, uri }, ctx) {
      await askForResource(ctx, server, uri)
      await start(ctx.abort)
      return { title: `${server}: ${uri}`, output: "" }
    },
  })
}

async function askForResource(ctx: Pick<ToolContext, "ask">, server: string, uri: string): Promise<void> {
  await ctx.ask({
    permission: readResourceID,
    patterns: [`${server}:${uri}`],
    always: [`${server}:*`],
    metadata: { server, uri },
  })
}

/** Returns the resource URI of a file. */
export function uriOfFile(path: string): string {
  return pathToFileURL(path).href
}

/** Returns the path of a file URI. Throws `ProtocolError` if the URI does not identify a file on this machine. */
export function pathOfUri(uri: string): string {
  try {
    return fileURLToPath(uri)
  } catch {
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      `${uri} is not a file on this machine. Use file:// and an absolute path.`,
    )
  }
}

/** Resolves links. If that fails, returns the path unchanged, so that opening it reports the error. */
export function linkTarget(path: string): string {
  try {
    return realPath(path)
  } catch {
    return path
  }
}

async function contentOf(file: OpenFile, path: string, signal: AbortSignal) {
  const kind = fileKind(basename(path), readStart(file, sampleBytes))
  const bytes = await readAll(file, path, signal)
  if (kind.kind === "text")
    return { mimeType: "text/plain", text: new TextDecoder(kind.encoding).decode(bytes) }
  const mimeType = kind.kind === "media" ? kind.mime : "application/octet-stream"
  return { mimeType, blob: bytes.toString("base64") }
}

async function readAll(file: OpenFile, path: string, signal: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of readChunks(file, signal)) {
    size += chunk.length
    if (size > maxFileBytes)
      throw new UsageError(
        `${path} is larger than the limit of ${maxFileBytes} bytes for a resource. Read parts of it with the read tool.`,
      )
    chunks.push(Buffer.from(chunk))
  }
  return Buffer.concat(chunks)
}
