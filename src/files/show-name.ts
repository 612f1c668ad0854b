// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to find
const unprintable = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/

/**
 * Returns a path that fits on one line of output. A path with control characters, line separators or bidirectional
 * marks becomes a quoted JSON string.
 */
export function showName(path: string): string {
  if (!unprintable.test(path)) return path
  return JSON.stringify(path).replace(new RegExp(unprintable, "gu"), escaped)
}

/** Returns a path as an attribute value. The caller puts it in double quotes. */
export function nameAttribute(path: string): string {
  return path.replace(new RegExp(unprintable, "gu"), escaped).replaceAll('"', "&quot;")
}

function escaped(character: string): string {
  return character === "\n" ? "\\n" : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`
}
