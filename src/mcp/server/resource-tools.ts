import { basename } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server"
import * as z from "zod"
import type { Tackle } from "../../engine/tackle.ts"
import { fileKind, sampleBytes } from "../../files/file-kind.ts"
import { type OpenFile, openFile, pinnedPatterns, readChunks, readStart } from "../../files/open-file.ts"
import type { ToolContext } from "../../tool/context.ts"
import { define } from "../../tool/tool.ts"
import { UsageError } from "../../util/errors.ts"
import { realPath, resolvePath } from "../../util/paths.ts"
import { identityAt } from "../../util/pinned-path.ts"
import { readResourceID } from "../client/resources.ts"

/** A client takes a resource whole: larger files are for `read`, in parts. In bytes. */
const maxFileBytes = 10 * 1024 * 1024

/**
 * Gives a file whole, as it is, in `metadata.contents`. Its id and what it asks are those of `read`, and so is the name of
 * its argument: plugins look at it.
 */
export const readFileWhole = define("read", {
  description: "Reads a file whole, for a client that names it as a resource.",
  parameters: z.object({ filePath: z.string() }),
  access: "read",
  async execute({ filePath }, ctx) {
    const path = resolvePath(filePath, ctx.directory)
    const real = whereItLeads(path)
    const identity = identityAt(real)
    await ctx.ask({
      permission: "read",
      patterns: pinnedPatterns(path, real),
      always: ["*"],
      metadata: { filePath: path },
    })
    const file = await openFile(path, real, { identity })
    try {
      const contents = [{ uri: uriOfFile(path), ...(await contentOf(file, path, ctx.abort)) }]
      return { title: path, output: "", metadata: { contents } }
    } finally {
      file.close()
    }
  },
})

/** Gives what an MCP server behind the engine answers, in `metadata.contents`. Asks for leave as the model's tool does. */
export function readServerResource(tackle: Pick<Tackle, "readMcpResource">) {
  return define(readResourceID, {
    description: "Reads a resource of an MCP server, for a client that names it.",
    parameters: z.object({ server: z.string(), uri: z.string() }),
    access: "network",
    async execute({ server, uri }, ctx) {
      await askForResource(ctx, { server, uri })
      const contents = await tackle.readMcpResource({ server, uri, signal: ctx.abort })
      return { title: `${server}: ${uri}`, output: "", metadata: { contents } }
    },
  })
}

/** Asks as the tool does by which models read what servers have. */
export async function askForResource(
  ctx: Pick<ToolContext, "ask">,
  { server, uri }: { server: string; uri: string },
): Promise<void> {
  await ctx.ask({
    permission: readResourceID,
    patterns: [`${server}:${uri}`],
    always: [`${server}:*`],
    metadata: { server, uri },
  })
}

/** The address of a file as a resource. */
export function uriOfFile(path: string): string {
  return pathToFileURL(path).href
}

/** The path that an address of a file stands for. Throws `ProtocolError` for one of another machine. */
export function pathOfUri(uri: string): string {
  try {
    return fileURLToPath(uri)
  } catch {
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      `${uri} names no file of this machine. Write file:// and an absolute path.`,
    )
  }
}

/** What cannot be resolved is asked for by its own name, and what opens it then says what is wrong. */
export function whereItLeads(path: string): string {
  try {
    return realPath(path)
  } catch {
    return path
  }
}

async function contentOf(file: OpenFile, path: string, signal: AbortSignal) {
  const kind = fileKind(basename(path), readStart(file, sampleBytes))
  const bytes = await wholeOf(file, path, signal)
  if (kind.kind === "text")
    return { mimeType: "text/plain", text: new TextDecoder(kind.encoding).decode(bytes) }
  const mimeType = kind.kind === "media" ? kind.mime : "application/octet-stream"
  return { mimeType, blob: bytes.toString("base64") }
}

async function wholeOf(file: OpenFile, path: string, signal: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of readChunks(file, signal)) {
    size += chunk.length
    if (size > maxFileBytes)
      throw new UsageError(
        `${path} is larger than ${maxFileBytes} bytes, which a resource may have. Read it in parts with the tool read.`,
      )
    chunks.push(Buffer.from(chunk))
  }
  return Buffer.concat(chunks)
}
