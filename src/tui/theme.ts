import { mkdir, readdir, readFile, writeFile } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import type { EditorTheme, MarkdownTheme, SelectListTheme } from "@earendil-works/pi-tui"
import * as z from "zod"
import { errorMessage, systemCode, UsageError } from "../util/errors.ts"

/** Adds a style to text. Returns the text unchanged if colors are disabled. */
export type Paint = (text: string) => string

/** Meanings of text that have their own color. */
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

type ColorName = (typeof colorNames)[number]

/** Styles of the terminal interface. */
export interface Theme extends Record<ColorName, Paint> {
  name: string
  /** Background that the colors are made for. */
  background: "dark" | "light"
  bold: Paint
  italic: Paint
  underline: Paint
  strikethrough: Paint
  inverse: Paint
  /** Marks the selected line of a list. */
  selected: Paint
}

/** A color: `#rrggbb`, a number of the 256-color palette, or one of the terminal's own 16 colors. */
const Color = z.union([
  z.string().regex(/^#[0-9a-fA-F]{6}$/),
  z.int().min(0).max(255),
  z.enum([
    ...(["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white", "gray"] as const),
    ...(["brightRed", "brightGreen", "brightYellow", "brightBlue", "brightMagenta", "brightCyan"] as const),
    "default",
  ]),
])
type Color = z.infer<typeof Color>

/**
 * The content of a theme file. Colors that the file does not contain are taken from the built-in theme for the
 * background.
 */
const ThemeFile = z.strictObject({
  $schema: z.string().optional(),
  background: z.enum(["dark", "light"]),
  colors: z.strictObject(
    Object.fromEntries(colorNames.map((name) => [name, Color.optional()])) as Record<
      ColorName,
      z.ZodOptional<typeof Color>
    >,
  ),
})

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

/** How many colors the terminal shows. */
export type ColorDepth = "none" | "256" | "full"

/**
 * Returns the number of colors that the terminal supports, according to the environment. `NO_COLOR` disables colors.
 */
export function colorDepth(env: Readonly<Record<string, string | undefined>>): ColorDepth {
  if (env.NO_COLOR || env.TERM === "dumb") return "none"
  return /^(truecolor|24bit)$/i.test(env.COLORTERM ?? "") ? "full" : "256"
}

/** Returns a built-in theme. */
export function builtInTheme(background: "dark" | "light", depth: ColorDepth): Theme {
  return themeOf({ name: background, background, colors: builtIn[background], depth })
}

/** A theme, or the reason why its file cannot be used. */
export type ThemeEntry = { name: string; theme: Theme } | { name: string; problem: string }

/** Returns the built-in themes and the themes in the directory. The name of each JSON file is the name of its theme. */
export async function listThemes(directory: string, depth: ColorDepth): Promise<ThemeEntry[]> {
  const own = await Promise.all(
    (await themeFiles(directory)).map(async (path): Promise<ThemeEntry> => {
      const name = basename(path, ".json")
      try {
        return { name, theme: await readTheme(path, depth) }
      } catch (error) {
        return { name, problem: errorMessage(error) }
      }
    }),
  )
  const names = new Set(own.map(({ name }) => name))
  const standard = (["dark", "light"] as const).map((name) => ({ name, theme: builtInTheme(name, depth) }))
  return [...standard.filter(({ name }) => !names.has(name)), ...own]
}

/** The themes that the user can choose, and the choice. */
export interface Themes {
  list(): Promise<ThemeEntry[]>
  /** Returns the theme that was chosen earlier. Undefined means that the theme follows the terminal's background. */
  chosen(): Promise<ThemeEntry | undefined>
  /** Stores the name of a theme for later starts. Undefined follows the terminal's background. */
  choose(name: string | undefined): Promise<void>
}

/** Opens the themes of a directory. `choice` is the file with the name of the chosen theme. */
export function openThemes(paths: { directory: string; choice: string }, depth: ColorDepth): Themes {
  const list = () => listThemes(paths.directory, depth)
  return {
    list,
    async chosen() {
      const name = await readFile(paths.choice, "utf8").catch((error: unknown) => {
        if (systemCode(error) === undefined) throw error
        return ""
      })
      if (name.trim() === "") return undefined
      const found = (await list()).find((entry) => entry.name === name.trim())
      return found ?? { name: name.trim(), problem: `The theme "${name.trim()}" does not exist any more.` }
    },
    async choose(name) {
      await mkdir(dirname(paths.choice), { recursive: true })
      await writeFile(paths.choice, name === undefined ? "" : `${name}\n`)
    },
  }
}

async function themeFiles(directory: string): Promise<string[]> {
  try {
    const names = await readdir(directory)
    return names
      .filter((name) => name.endsWith(".json"))
      .sort()
      .map((name) => join(directory, name))
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return []
  }
}

/** Reads a theme file. Throws `UsageError` with the path and the reason if it is not a theme. */
async function readTheme(path: string, depth: ColorDepth): Promise<Theme> {
  let value: unknown
  try {
    value = JSON.parse(await readFile(path, "utf8"))
  } catch (error) {
    throw new UsageError(`The theme ${path} is not valid JSON: ${errorMessage(error)}`)
  }
  const parsed = ThemeFile.safeParse(value)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    const where = issue?.path.length ? `${issue.path.join(".")}: ` : ""
    throw new UsageError(
      `The theme ${path} cannot be used: ${where}${issue?.message ?? "unknown problem"}. A color is #rrggbb, a number from 0 to 255, or a name such as "red".`,
    )
  }
  const { background, colors } = parsed.data
  const given = Object.entries(colors).filter(([, color]) => color !== undefined)
  const all = { ...builtIn[background], ...(Object.fromEntries(given) as Partial<Record<ColorName, Color>>) }
  return themeOf({ name: basename(path, ".json"), background, colors: all, depth })
}

function themeOf({
  name,
  background,
  colors,
  depth,
}: {
  name: string
  background: "dark" | "light"
  colors: Record<ColorName, Color>
  depth: ColorDepth
}): Theme {
  const painted = Object.fromEntries(
    colorNames.map((each) => [each, foreground(colors[each], depth)]),
  ) as Record<ColorName, Paint>
  // Without colors, bold and dim text still show what is selected and important.
  return {
    ...painted,
    name,
    background,
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

const ansi: Readonly<Record<Extract<Color, string>, number | undefined>> = {
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

/** Changes the styles of a theme to those of another. Everything that uses the theme is shown in the new styles. */
export function changeTheme(theme: Theme, next: Theme): void {
  Object.assign(theme, next)
}

/** Returns the styles of a list. They follow later changes of the theme. */
export function selectListTheme(theme: Theme): SelectListTheme {
  return {
    selectedPrefix: (text) => theme.accent(text),
    selectedText: (text) => theme.selected(text),
    description: (text) => theme.dim(text),
    scrollInfo: (text) => theme.dim(text),
    noMatch: (text) => theme.dim(text),
  }
}

/** Returns the styles of the editor. They follow later changes of the theme. */
export function editorTheme(theme: Theme): EditorTheme {
  return { borderColor: (text) => theme.border(text), selectList: selectListTheme(theme) }
}

/** Returns the styles of Markdown. They follow later changes of the theme. */
export function markdownTheme(theme: Theme): MarkdownTheme {
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
