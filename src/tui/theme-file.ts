import { mkdir, readdir, readFile, writeFile } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import * as z from "zod"
import { errorMessage, systemCode, UsageError } from "../util/errors.ts"
import {
  builtInTheme,
  type ColorDepth,
  type ColorName,
  colorNames,
  type Theme,
  terminalColors,
  themeOf,
} from "./theme.ts"

/** A color: `#rrggbb`, a number in the 256-color palette, or the name of one of the terminal's own colors. */
const Color = z.union([
  z.templateLiteral(["#", z.string().regex(/^[0-9a-fA-F]{6}$/)]),
  z.int().min(0).max(255),
  z.enum(terminalColors),
])

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

/** A theme, or the reason why its file cannot be used. */
export type ThemeEntry = { name: string; theme: Theme } | { name: string; problem: string }

/**
 * Returns the built-in themes and the themes in the directory. A theme's name is the name of its file without `.json`.
 * A theme named `dark` or `light` replaces the built-in theme.
 */
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
  /** Saves the name of a theme for later starts. Undefined means that the theme follows the terminal's background. */
  choose(name: string | undefined): Promise<void>
}

/** Opens the themes in a directory. `choice` is the path of the file that contains the name of the chosen theme. */
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
      return (
        found ?? {
          name: name.trim(),
          problem: `The theme "${name.trim()}" no longer exists. Choose one with /theme.`,
        }
      )
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
    throw new UsageError(`The theme ${path} cannot be read or is not valid JSON: ${errorMessage(error)}`)
  }
  const parsed = ThemeFile.safeParse(value)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    const where = issue?.path.length ? `${issue.path.join(".")}: ` : ""
    throw new UsageError(
      `The theme ${path} cannot be used: ${where}${issue?.message ?? "unknown problem"}. A color is #rrggbb, a number from 0 to 255, or a name such as "red".`,
    )
  }
  return themeOf({ name: basename(path, ".json"), ...parsed.data, depth })
}
