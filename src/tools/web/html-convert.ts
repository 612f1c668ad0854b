import TurndownService from "turndown"
import type { HtmlForm } from "./html-to-text.ts"

/** Elements that contain no page text, such as code, styles and embedded documents. */
const invisible = ["script", "style", "noscript", "template", "iframe", "object", "embed", "canvas"] as const

/**
 * Converts a page to Markdown or plain text. In Markdown, makes the URLs of links and images absolute. Omits embedded
 * images and elements without text. Takes seconds for large or badly nested pages, and throws `RangeError` for deeply
 * nested pages, so call it through `html-to-text.ts`.
 */
export function convertHtml(html: string, base: string, form: HtmlForm): string {
  const service = new TurndownService({
    headingStyle: "atx",
    codeBlockStyle: "fenced",
    bulletListMarker: "-",
    emDelimiter: "*",
  })
  service.remove([...invisible])
  service.remove((node) => node.nodeName === "svg" || node.nodeName === "SVG")
  service.addRule("title", { filter: "title", replacement: (content) => `${content.trim()}\n\n` })
  service.addRule("table", {
    filter: isDataTable,
    replacement: (_, node) => `\n\n${table(node, service)}\n\n`,
  })
  if (form === "text") plainRules(service)
  else linkRules(service, base)
  return service.turndown(html)
}

function linkRules(service: TurndownService, base: string): void {
  service.addRule("link", {
    filter: "a",
    replacement(content, node) {
      const url = absolute(attribute(node, "href"), base)
      return url === undefined || content.trim() === "" ? content : `[${content.trim()}](${url})`
    },
  })
  service.addRule("image", {
    filter: "img",
    replacement(_, node) {
      const [url, text] = [absolute(attribute(node, "src"), base), attribute(node, "alt").trim()]
      return url === undefined ? text : `![${text}](${url})`
    },
  })
}

function plainRules(service: TurndownService): void {
  service.escape = (text) => text
  service.addRule("inline", {
    filter: ["a", "b", "strong", "i", "em", "code"],
    replacement: (content) => content,
  })
  service.addRule("heading", {
    filter: ["h1", "h2", "h3", "h4", "h5", "h6", "pre", "blockquote"],
    replacement: (content, node) => `\n\n${node.nodeName === "PRE" ? (node.textContent ?? "") : content}\n\n`,
  })
  service.addRule("image", { filter: "img", replacement: (_, node) => attribute(node, "alt") })
}

/** The members of a DOM node that the conversion uses. */
interface PageNode {
  nodeName: string
  textContent: string | null
  innerHTML?: string
  getAttribute?(name: string): string | null
  querySelector?(selector: string): PageNode | null
  querySelectorAll?(selector: string): ArrayLike<PageNode>
}

function attribute(node: PageNode, name: string): string {
  return node.getAttribute?.(name) ?? ""
}

/**
 * Returns the absolute URL, or undefined for links within the page and for protocols other than HTTP, HTTPS and
 * `mailto`, such as `data`.
 */
function absolute(url: string, base: string): string | undefined {
  if (url === "" || url.startsWith("#") || !URL.canParse(url, base)) return undefined
  const { protocol, href } = new URL(url, base)
  return /^(?:https?|mailto):$/.test(protocol)
    ? href.replaceAll("(", "%28").replaceAll(")", "%29")
    : undefined
}

/** Returns true for a data table. Layout tables contain other tables or a single column. */
function isDataTable(node: PageNode): boolean {
  if (node.nodeName !== "TABLE") return false
  return !node.querySelector?.("table") && all(node, "tr").some((row) => all(row, "td, th").length > 1)
}

function table(node: PageNode, service: TurndownService): string {
  const rows = all(node, "tr").map((row) => all(row, "td, th").map((cell) => cellText(cell, service)))
  const width = Math.max(...rows.map((row) => row.length))
  const lines = rows.map(
    (row) => `| ${Array.from({ length: width }, (_, at) => row[at] ?? "").join(" | ")} |`,
  )
  return [...lines.slice(0, 1), `|${" --- |".repeat(width)}`, ...lines.slice(1)].join("\n")
}

function cellText(cell: PageNode, service: TurndownService): string {
  const content = cell.innerHTML?.trim() ? service.turndown(cell.innerHTML) : ""
  return content.replace(/\s+/g, " ").trim().replaceAll("|", "\\|")
}

function all(node: PageNode, selector: string): PageNode[] {
  return Array.from(node.querySelectorAll?.(selector) ?? [])
}
