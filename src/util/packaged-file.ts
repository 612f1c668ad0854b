import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import { TackleError } from "./errors.ts"

/**
 * Returns the path of a file that the build stores in `dist/cli`, such as a grammar. Searches the directory of the code,
 * which is the directory of a bundle, then the package. If Tackle runs from source, resolves `source`: a file of a
 * package, or a path relative to this module. Throws `TackleError` with the code `file.missing` if the file does not
 * exist.
 */
export function packagedFile(name: string, source: string): string {
  for (const directory of ["./", "../../cli/"]) {
    const path = fileURLToPath(new URL(`${directory}${name}`, import.meta.url))
    if (existsSync(path)) return path
  }
  try {
    return createRequire(import.meta.url).resolve(source)
  } catch (cause) {
    throw new TackleError(
      `The file ${name} is missing. If Tackle is part of a bundle, copy dist/cli/${name} of the package tackle into the directory of the bundle.`,
      { code: "file.missing", recoverable: false, cause },
    )
  }
}
