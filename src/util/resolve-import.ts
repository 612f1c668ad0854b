import { dirname, join } from "node:path"
import { systemCode } from "./errors.ts"

/**
 * Where an import leads: as Node says, and where that finds no file as bundlers do. Throws what Node throws;
 * {@link missingImport} then tells what was asked for. `onMissing` hears of each file that was looked for and is not there.
 */
export function resolveImport<T>(
  { specifier, importer }: { specifier: string; importer: string | undefined },
  next: (specifier: string) => T,
  onMissing: (path: string) => void = () => {},
): T {
  try {
    return resolveLoosely(specifier, next)
  } catch (error) {
    const isMissing = ["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"].includes(systemCode(error) ?? "")
    if (!isMissing || importer === undefined) throw error
    if (error instanceof Error) missingImports.set(error, { specifier, importer })
    if (specifier.startsWith(".")) {
      const base = join(dirname(importer), specifier)
      for (const ending of ["", ...endings]) onMissing(`${base}${ending}`)
    }
    throw error
  }
}

/** Where an import of a graph found nothing. */
interface MissingImport {
  /** As it is written. */
  specifier: string
  /** Absolute path of the file that imports it. */
  importer: string
}

const missingImports = new WeakMap<object, MissingImport>()

/** What was imported where nothing was found, for an error that a graph was loaded with; undefined for any other. */
export function missingImport(error: unknown): MissingImport | undefined {
  return typeof error === "object" && error !== null ? missingImports.get(error) : undefined
}

/** What bundlers take for a file that is named without its ending, or as what it is compiled to. */
const endings = [".ts", ".mts", ".js", ".mjs", "/index.ts", "/index.js"]

/** As Node does, and where that finds no file as bundlers do: people's modules are written for these too. */
function resolveLoosely<T>(specifier: string, next: (specifier: string) => T): T {
  try {
    return next(specifier)
  } catch (error) {
    if (!isPath(specifier) || specifier.startsWith("#")) throw error
    const base = specifier.replace(/\.m?js$/, "")
    for (const ending of endings) {
      try {
        return next(`${base}${ending}`)
      } catch {
        // The next may be there; if none is, what Node said of the name as written is told.
      }
    }
    throw error
  }
}

/** True for what names a file and not a package; `#name` is what a package.json makes of it. */
export function isPath(specifier: string): boolean {
  return /^(?:\.{0,2}\/|\.{1,2}$|file:|#)/i.test(specifier)
}
