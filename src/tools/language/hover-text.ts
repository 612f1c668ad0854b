import type { Hover, MarkedString, MarkupContent } from "vscode-languageserver-protocol"

/** What a server says about a place, as Markdown. Empty: nothing. */
export function hoverText(hover: Hover | null): string {
  if (!hover) return ""
  const contents = Array.isArray(hover.contents) ? hover.contents : [hover.contents]
  return contents.map(partText).join("\n\n").trim()
}

function partText(part: MarkupContent | MarkedString): string {
  if (typeof part === "string") return part
  return "language" in part ? `\`\`\`${part.language}\n${part.value}\n\`\`\`` : part.value
}
