import { Markdown } from "@earendil-works/pi-tui"
import { createMarkdownBlocks } from "../view/markdown-blocks.ts"
import { visible } from "../view/visible.ts"
import { markdownTheme, type Theme } from "./theme.ts"

/** Lines of complete blocks, by text. A streamed text changes only in its last block. */
const blockLines = new Map<string, string[]>()
const maxBlocks = 500

/** Formats Markdown as lines of at most `width` columns. Makes hidden characters visible. */
export function renderMarkdown(text: string, width: number, theme: Theme): string[] {
  const blocks = createMarkdownBlocks()
  const complete = blocks.push(visible(text))
  const rest = blocks.rest()
  const lines = complete.flatMap((block) => [...renderBlock(block, width, theme), ""])
  return rest.trim() === "" ? lines.slice(0, -1) : [...lines, ...format(rest, width, theme)]
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

function format(text: string, width: number, theme: Theme): string[] {
  const options = { renderLatex: false, preserveOrderedListMarkers: true }
  return new Markdown(text, 0, 0, markdownTheme(theme), undefined, options)
    .render(width)
    .map((line) => line.trimEnd())
}
