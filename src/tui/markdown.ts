import { Markdown } from "@earendil-works/pi-tui"
import { createMarkdownBlocks } from "../view/markdown-blocks.ts"
import { visible } from "../view/visible.ts"
import { renderCode } from "./code.ts"
import { markdownTheme, type Theme } from "./theme.ts"

/**
 * Lines of complete blocks, keyed by theme, width and text. Cached, because a streamed text changes only in its last
 * block.
 */
const blockLines = new Map<string, string[]>()
const maxBlocks = 500

/** Formats Markdown as lines of at most `width` columns. Makes hidden characters visible. */
export function renderMarkdown(text: string, width: number, theme: Theme): string[] {
  const blocks = createMarkdownBlocks()
  const complete = blocks.push(visible(text))
  const rest = blocks.rest()
  const lines = complete.flatMap((block) => [...renderBlock(block, width, theme), ""])
  if (rest.trim() === "") return lines.slice(0, -1)
  // A block that ends with a closed code fence does not change until another line begins.
  const last = closing.test(rest) ? renderBlock(rest, width, theme) : format(rest, width, theme, true)
  return [...lines, ...last]
}

const closing = /\n\s*(?:`{3,}|~{3,})\s*$/

/** Clears the cached lines of all blocks. Needed after the highlighter has been loaded, because it adds colors. */
export function forgetBlocks(): void {
  blockLines.clear()
}

function renderBlock(block: string, width: number, theme: Theme): string[] {
  const key = `${theme.name} ${width} ${block}`
  const known = blockLines.get(key)
  if (known) return known
  const lines = format(block, width, theme)
  blockLines.set(key, lines)
  const [oldest] = blockLines.keys()
  if (blockLines.size > maxBlocks && oldest !== undefined) blockLines.delete(oldest)
  return lines
}

function format(text: string, width: number, theme: Theme, isOpen = false): string[] {
  const options = { renderLatex: false, preserveOrderedListMarkers: true }
  const highlightCode = (code: string, language?: string) => renderCode(code, language, { theme, isOpen })
  return new Markdown(text, 0, 0, { ...markdownTheme(theme), highlightCode }, undefined, options)
    .render(width)
    .map((line) => line.trimEnd())
}
