import TurndownService from "turndown"

/** How a page is to be given. `text`: without marks for emphasis, headings and links. */
export type HtmlForm = "markdown" | "text"

/** What a page shows of itself in a browser, or should not: code, styles, embedded documents. */
const invisible = ["script", "style", "noscript", "template", "iframe", "object", "embed", "canvas"] as const

/**
 * A page as Markdown or plain text. Addresses of links and images become absolute from `base`; embedded images and
 * whatever a browser does not show as text are left out. Takes seconds for large or badly nested pages, and throws
 * `RangeError` for those nested too deeply: call it through `html-to-text.ts`.
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

/** What is read of a node of the page. */
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

/** Undefined for what leads nowhere outside of the page, and for data that is embedded in it. */
function absolute(url: string, base: string): string | undefined {
  if (url === "" || url.startsWith("#") || !URL.canParse(url, base)) return undefined
  const { protocol, href } = new URL(url, base)
  return /^(?:https?|mailto):$/.test(protocol)
    ? href.replaceAll("(", "%28").replaceAll(")", "%29")
    : undefined
}

/** Tables that only lay out a page hold other tables or a single column. */
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
