import { readFileSync } from "node:fs"
import { join } from "node:path"

const reading = /readText\(new URL\("(\.[^"]+)", import\.meta\.url\)\)/g

/**
 * Replaces each `readText(new URL("./name.md", import.meta.url))` in code with the text, so that a bundle needs no other
 * file. `path` is the path of the source. Throws if the code reads a text in another way.
 */
export function inlineTexts(code: string, path: string): string {
  const inlined = code.replaceAll(reading, (_, name: string) =>
    JSON.stringify(readFileSync(join(path, "..", name), "utf8").trim()),
  )
  if (/readText\(new URL\(/.test(inlined))
    throw new Error(`${path} reads a text whose name is not a literal. The build cannot inline it.`)
  return inlined
}
