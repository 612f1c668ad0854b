import { fileURLToPath } from "node:url"

/** The path of a `file:` address, however the server wrote it; undefined for every other kind. */
export function pathOfUri(uri: string): string | undefined {
  try {
    return fileURLToPath(uri)
  } catch {
    return undefined
  }
}
