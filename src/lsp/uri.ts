import { fileURLToPath } from "node:url"

/** Returns the path of a `file:` URI, or undefined for other URIs. */
export function pathOfUri(uri: string): string | undefined {
  try {
    return fileURLToPath(uri)
  } catch {
    return undefined
  }
}
