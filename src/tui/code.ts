import type { Theme } from "./theme.ts"

/** The highlighter. Loading it takes about 20 ms, so it is loaded when the first code block appears. */
let loaded: typeof import("./highlighter.ts") | undefined
let loading: Promise<void> | undefined
const listeners = new Set<() => void>()

/** Loads the highlighter. Until it is loaded, code blocks have no colors. */
export function loadHighlighter(): Promise<void> {
  loading ??= import("./highlighter.ts").then((module) => {
    loaded = module
    for (const listener of listeners) listener()
  })
  return loading
}

/** Returns true if the text contains a code block whose colors require {@link loadHighlighter}. */
export function needsHighlighter(text: string, theme: Theme): boolean {
  return !loaded && theme.hasColors && /^\s*(?:```|~~~)\w/m.test(text)
}

/** Calls the listener when the highlighter is loaded. Returns a function that removes the listener. */
export function onHighlighter(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Maximum number of characters in a highlighted block. Longer blocks have no colors. */
const maxCharacters = 50_000

/**
 * Formats the lines of a code block with the colors of its language. The lines have no colors if the language is
 * unknown, the theme has no colors, the block is too long, or the highlighter has not been loaded yet. If `isOpen` is
 * true, the block is still being streamed, and its last lines have no colors.
 */
export function renderCode(
  code: string,
  language: string | undefined,
  { theme, isOpen }: { theme: Theme; isOpen: boolean },
): string[] {
  const [name] = /^[\w+#-]+/.exec(language ?? "") ?? []
  if (name === undefined || !theme.hasColors || code.length > maxCharacters) return code.split("\n")
  if (!loaded) {
    void loadHighlighter()
    return code.split("\n")
  }
  return isOpen
    ? openLines(code, name, theme)
    : (loaded.highlight(code, name.toLowerCase(), theme) ?? code.split("\n"))
}

/** The highlighted lines of the block that is being streamed, and the earliest time to highlight it again. */
let open = { text: "", lines: [] as string[], themeName: "", nextAt: 0 }

/**
 * Maximum number of new lines in an open block that stay plain temporarily. Lines must get their colors before they
 * scroll off the screen, because a change above the screen redraws the whole conversation.
 */
const maxPlainLines = 6

/** Highlights the complete lines of a growing block. The newest lines of a long block stay plain temporarily. */
function openLines(code: string, language: string, theme: Theme): string[] {
  const complete = code.slice(0, code.lastIndexOf("\n") + 1)
  const isSame = theme.name === open.themeName && complete.startsWith(open.text) && open.text !== ""
  const now = performance.now()
  const plain = complete.slice(open.text.length).split("\n").length - 1
  if (!isSame || plain > maxPlainLines || (plain > 0 && now >= open.nextAt)) {
    const lines = loaded?.highlight(complete, language.toLowerCase(), theme)?.slice(0, -1) ?? []
    const end = performance.now()
    // Limits the share of time that is spent on highlighting.
    open = { text: complete, lines, themeName: theme.name, nextAt: end + 10 * (end - now) }
  }
  return [...open.lines, ...code.split("\n").slice(open.lines.length)]
}
