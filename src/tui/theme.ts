import type { EditorTheme, MarkdownTheme, SelectListTheme } from "@earendil-works/pi-tui"

/** Adds a style to text. If colors are disabled, a color leaves the text unchanged. */
export type Paint = (text: string) => string

/** The kinds of text that have their own color. */
export const colorNames = [
  "accent",
  "dim",
  "success",
  "warning",
  "error",
  "added",
  "removed",
  "border",
  "user",
  "code",
  "heading",
  "link",
  "keyword",
  "string",
  "comment",
] as const

/** A kind of text that has its own color. */
export type ColorName = (typeof colorNames)[number]

/** Styles for the terminal interface. */
export interface Theme extends Record<ColorName, Paint> {
  name: string
  /** Background for which the colors are designed. */
  background: "dark" | "light"
  /** False if the terminal shows no colors, or if the user has disabled colors. */
  hasColors: boolean
  bold: Paint
  italic: Paint
  underline: Paint
  strikethrough: Paint
  inverse: Paint
  /** Marks the selected line in a list. */
  selected: Paint
}

/** Names of the terminal's own colors. `default` is the color of normal text. */
export const terminalColors = [
  ...(["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white", "gray"] as const),
  ...(["brightRed", "brightGreen", "brightYellow", "brightBlue", "brightMagenta", "brightCyan"] as const),
  "default",
] as const
type TerminalColor = (typeof terminalColors)[number]

/** A color: `#rrggbb`, a number in the 256-color palette, or the name of one of the terminal's own colors. */
export type Color = TerminalColor | number | `#${string}`

const builtIn: Readonly<Record<"dark" | "light", Record<ColorName, Color>>> = {
  dark: {
    accent: "cyan",
    dim: "gray",
    success: "green",
    warning: "yellow",
    error: "red",
    added: "green",
    removed: "red",
    border: "gray",
    user: "brightBlue",
    code: "yellow",
    heading: "cyan",
    link: "blue",
    keyword: "magenta",
    string: "green",
    comment: "gray",
  },
  light: {
    accent: 25,
    dim: 242,
    success: 28,
    warning: 130,
    error: 160,
    added: 28,
    removed: 160,
    border: 247,
    user: 25,
    code: 94,
    heading: 25,
    link: 26,
    keyword: 90,
    string: 28,
    comment: 242,
  },
}

/** Number of colors that the terminal shows. */
export type ColorDepth = "none" | "256" | "full"

/**
 * Returns the number of colors that the terminal supports, derived from environment variables. `NO_COLOR` and
 * `TERM=dumb` disable colors.
 */
export function colorDepth(env: Readonly<Record<string, string | undefined>>): ColorDepth {
  if (env.NO_COLOR || env.TERM === "dumb") return "none"
  return /^(truecolor|24bit)$/i.test(env.COLORTERM ?? "") ? "full" : "256"
}

/** Returns a built-in theme. */
export function builtInTheme(background: "dark" | "light", depth: ColorDepth): Theme {
  return themeOf({ name: background, background, colors: builtIn[background], depth })
}

/** Creates a theme. Missing colors come from the built-in theme for the background. */
export function themeOf({
  name,
  background,
  colors,
  depth,
}: {
  name: string
  background: "dark" | "light"
  colors: Partial<Record<ColorName, Color>>
  depth: ColorDepth
}): Theme {
  const painted = Object.fromEntries(
    colorNames.map((each) => [each, foreground(colors[each] ?? builtIn[background][each], depth)]),
  ) as Record<ColorName, Paint>
  // If colors are disabled, bold text still shows what is selected or important.
  return {
    ...painted,
    name,
    background,
    hasColors: depth !== "none",
    bold: sgr("1", "22"),
    italic: sgr("3", "23"),
    underline: sgr("4", "24"),
    strikethrough: sgr("9", "29"),
    inverse: sgr("7", "27"),
    selected: (text) => sgr("1", "22")(painted.accent(text)),
  }
}

function sgr(on: string, off: string): Paint {
  return (text) => (text === "" ? "" : `\u001b[${on}m${text}\u001b[${off}m`)
}

const ansi: Readonly<Record<string, number>> = {
  ...{ black: 30, red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36, white: 37, gray: 90 },
  ...{ brightRed: 91, brightGreen: 92, brightYellow: 93, brightBlue: 94, brightMagenta: 95, brightCyan: 96 },
}

function foreground(color: Color, depth: ColorDepth): Paint {
  if (depth === "none" || color === "default") return (text) => text
  if (typeof color === "number") return sgr(`38;5;${color}`, "39")
  const named = ansi[color]
  if (named !== undefined) return sgr(String(named), "39")
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16))
  if (depth === "full") return sgr(`38;2;${red};${green};${blue}`, "39")
  // The color cube of the 256-color palette has six levels per channel.
  const level = (value: number) => Math.round((value / 255) * 5)
  return sgr(`38;5;${16 + 36 * level(red) + 6 * level(green) + level(blue)}`, "39")
}

/**
 * Replaces the styles of a theme with those of another theme. Everything that uses the first theme then shows the new
 * styles.
 */
export function changeTheme(theme: Theme, next: Theme): void {
  Object.assign(theme, next)
}

/** Returns the styles for a list. The styles change with the theme. */
function selectListTheme(theme: Theme): SelectListTheme {
  return {
    selectedPrefix: (text) => theme.accent(text),
    selectedText: (text) => theme.selected(text),
    description: (text) => theme.dim(text),
    scrollInfo: (text) => theme.dim(text),
    noMatch: (text) => theme.dim(text),
  }
}

/** Returns the styles for the editor. The styles change with the theme. */
export function editorTheme(theme: Theme): EditorTheme {
  return { borderColor: (text) => theme.border(text), selectList: selectListTheme(theme) }
}

/** Returns the styles for Markdown. The styles change with the theme. */
export function markdownTheme(theme: Theme): Omit<MarkdownTheme, "highlightCode"> {
  const dim = (text: string) => theme.dim(text)
  return {
    heading: (text) => theme.bold(theme.heading(text)),
    link: (text) => theme.underline(theme.link(text)),
    linkUrl: dim,
    code: (text) => theme.code(text),
    codeBlock: (text) => text,
    codeBlockBorder: dim,
    quote: theme.italic,
    quoteBorder: dim,
    hr: dim,
    listBullet: (text) => theme.accent(text),
    bold: theme.bold,
    italic: theme.italic,
    strikethrough: theme.strikethrough,
    underline: theme.underline,
  }
}
