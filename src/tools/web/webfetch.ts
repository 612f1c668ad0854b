import * as z from "zod"
import { fileKind, sampleBytes } from "../../files/file-kind.ts"
import type { ToolContext } from "../../tool/context.ts"
import { define, type Info, type ToolResult } from "../../tool/tool.ts"
import { readText } from "../../util/file-system.ts"
import { counted } from "../../util/words.ts"
import type { Page } from "./fetch-page.ts"
import { createPageCache, type PageCache } from "./page-cache.ts"
import { WebfetchError } from "./webfetch-error.ts"

const parameters = z.lazy(() =>
  z.object({
    url: z.string().trim().min(1).describe("URL of the page, with http:// or https://"),
    format: z
      .enum(["markdown", "text", "html"])
      .default("markdown")
      .describe("Format for HTML pages; other content is returned as is"),
    timeout: z.number().positive().max(120).default(30).describe("Seconds to wait"),
  }),
)

type Arguments = z.output<typeof parameters>

/** Creates the webfetch tool. Pages are cached per session. */
export function createWebfetchTool(cache = createPageCache()): Info<typeof parameters> {
  return define("webfetch", {
    description: readText(new URL("./webfetch.md", import.meta.url)),
    parameters,
    access: "network",
    asksFirst: true,
    async execute(args, ctx) {
      const { page, cached } = await openPage(args, ctx, cache)
      const content = await contentOf(page, args.format, ctx.abort)
      const { url, contentType, body } = page
      const asked = page.asked[0]?.href
      const moved = asked !== undefined && asked !== url.href ? `[${asked} redirected to ${url}]\n\n` : ""
      return {
        title: `${url} (${mimeOf(contentType) || "unknown type"})`,
        output: moved + content.output,
        metadata: { url: url.href, contentType, bytes: body.length, format: args.format, cached },
        attachments: content.attachments,
      }
    },
  })
}

/** Preferred content types by format. */
const accepts: Record<Arguments["format"], string> = {
  markdown: "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5",
  text: "text/plain, text/markdown;q=0.9, text/html;q=0.8, */*;q=0.5",
  html: "text/html, application/xhtml+xml, */*;q=0.5",
}

async function openPage(
  { url: text, format, timeout }: Arguments,
  ctx: ToolContext,
  cache: PageCache,
): Promise<{ page: Page; cached: boolean }> {
  const { fetchPage, parseUrl } = await import("./fetch-page.ts")
  const url = parseUrl(text)
  const askUrl = (wanted: URL) =>
    ctx.ask({
      permission: "webfetch",
      patterns: [wanted.href],
      always: [`${wanted.origin}/*`],
      metadata: { url: wanted.href, format, timeout },
    })
  const key = JSON.stringify([ctx.sessionID, format, url.href])
  const known = cache.get(key)
  if (known) {
    for (const asked of known.asked) await askUrl(asked)
    return { page: known, cached: true }
  }
  const page = await fetchPage({
    url,
    accept: accepts[format],
    timeoutMs: timeout * 1000,
    signal: ctx.abort,
    askUrl,
    askPrivate: (wanted, host, addresses) =>
      ctx.ask({
        permission: "private_network",
        patterns: [host],
        always: [host],
        metadata: { url: wanted.href, addresses },
      }),
  })
  if (page.cacheable) cache.set(key, page)
  return { page, cached: false }
}

async function contentOf(
  page: Page,
  format: Arguments["format"],
  signal: AbortSignal,
): Promise<Pick<ToolResult, "output" | "attachments">> {
  const { url, body, contentType } = page
  // Ignores the name in the URL, because the URL of a page about a file often ends with the file's name.
  const kind = fileKind("", body.subarray(0, sampleBytes))
  if (kind.kind === "media") {
    const data = `data:${kind.mime};base64,${body.toString("base64")}`
    const filename = url.pathname.split("/").at(-1) || url.host
    return {
      output: `${url} is attached (${kind.mime}, ${body.length} bytes).`,
      attachments: [{ type: "file", mime: kind.mime, url: data, filename }],
    }
  }
  if (kind.kind === "binary" && !/\bcharset=utf-16/i.test(contentType)) {
    throw new WebfetchError(
      "content",
      `${url} is not text (${mimeOf(contentType) || "unknown type"}, ${counted(body.length, "byte")}). If you need the file, download it with bash.`,
    )
  }
  const { pageText } = await import("./page-text.ts")
  const text = pageText(body, contentType)
  if (format === "html" || !isHtml(contentType, text)) return { output: text }
  const { htmlToText } = await import("./html-to-text.ts")
  return { output: await htmlToText(text, { base: url.href, form: format, signal }) }
}

function mimeOf(contentType: string): string {
  return (contentType.split(";")[0] ?? "").trim().toLowerCase()
}

function isHtml(contentType: string, text: string): boolean {
  const mime = mimeOf(contentType)
  if (mime === "text/html" || mime === "application/xhtml+xml") return true
  return mime === "" && /^\s*<(?:!doctype\s+html|html)\b/i.test(text)
}
