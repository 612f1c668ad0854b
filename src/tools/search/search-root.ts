import { statPath } from "../../files/open-file.ts"
import { showName } from "../../files/show-name.ts"
import { displayPath } from "../../util/paths.ts"
import type { SearchRoot } from "./search-engine.ts"

/** A path that a search may start from. Throws as `statPath` does: missing (with near names), special, refused. */
export async function searchRoot(path: string): Promise<SearchRoot> {
  const found = await statPath(path, "Path")
  return { path, kind: found.isDirectory() ? "directory" : "file" }
}

/** How a found path is given to the model: relative where it lies in the working directory, on one line. */
export function showPath(path: string, directory: string): string {
  return showName(displayPath(path, directory))
}
