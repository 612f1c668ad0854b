/**
 * Returns the number and the noun, such as `1 file` or `2 files`. `several` is the plural form. Default: `noun` with an
 * `s`.
 */
export function counted(count: number, noun: string, several = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : several}`
}

/** Returns the first three paths and the number of further paths, as text. */
export function firstPaths(paths: readonly string[]): string {
  const more = paths.length > 3 ? ` and ${paths.length - 3} more` : ""
  return `${paths.slice(0, 3).join(", ")}${more}`
}

/** Returns the text as one word of a shell command, with single quotes if they are needed. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./~-]+$/.test(text) && !text.startsWith("~") ? text : quoted(text)
}

/** Returns the text in single quotes, as one word of a shell command. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
