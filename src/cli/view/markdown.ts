import { stripVTControlCharacters, styleText } from "node:util"
import type { MarkdownTheme } from "@earendil-works/pi-tui"
import { visible } from "../../view/visible.ts"

/** Formats Markdown as lines of at most `width` columns, with styles for stdout. Makes hidden characters visible. */
export type RenderMarkdown = (text: string, width: number) => string[]

/** Loads the renderer on demand, because most runs from a script never need it. */
export async function loadMarkdown(): Promise<RenderMarkdown> {
  const { Markdown } = await import("@earendil-works/pi-tui")
  return (text, width) => {
    const options = { renderLatex: false, preserveOrderedListMarkers: true }
    const lines = new Markdown(visible(text), 0, 0, theme, undefined, options).render(width)
    const plain = styleText("bold", "", { stream: process.stdout, validateStream: true }) === ""
    return lines.map((line) => (plain ? stripVTControlCharacters(line) : line).trimEnd())
  }
}

const theme: MarkdownTheme = {
  heading: paint("cyan"),
  link: paint("underline"),
  linkUrl: paint("dim"),
  code: paint("yellow"),
  codeBlock: (text) => text,
  codeBlockBorder: paint("dim"),
  quote: paint("italic"),
  quoteBorder: paint("dim"),
  hr: paint("dim"),
  listBullet: paint("cyan"),
  bold: paint("bold"),
  italic: paint("italic"),
  strikethrough: paint("strikethrough"),
  underline: paint("underline"),
}

function paint(name: Parameters<typeof styleText>[0]): (text: string) => string {
  return (text) => styleText(name, text, { stream: process.stdout, validateStream: true })
}
