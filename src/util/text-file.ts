import { readFileSync } from "node:fs"

/** A text that lies beside the code, such as a tool's description. Read once, when its module loads. */
export function readText(url: URL): string {
  return readFileSync(url, "utf8").trim()
}
