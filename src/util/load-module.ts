import { existsSync } from "node:fs"
import { createRequire, registerHooks } from "node:module"
import { extname } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { systemCode } from "./errors.ts"

/** What a user's module may import without having it installed: the name it writes → the URL of our own copy. */
export type ModuleAliases = Readonly<Record<string, string>>

/**
 * Imports a JavaScript or TypeScript file of the user. TypeScript runs as it is: by Node's own type stripping, and
 * where that refuses the syntax (enums, parameter properties) through jiti. A name in `aliases` resolves to ours, from
 * that file and from what it imports beside it. `version` tells a changed file from the one loaded before.
 * Throws what the module throws.
 */
export async function loadModule(
  path: string,
  options: { aliases: ModuleAliases; version?: string },
): Promise<Record<string, unknown>> {
  installHooks(options.aliases)
  const url = pathToFileURL(path)
  url.searchParams.set("tackle", options.version ?? "1")
  try {
    return await import(url.href)
  } catch (error) {
    if (!isRefusedSyntax(error)) throw error
    return await loadThroughJiti(path, options.aliases)
  }
}

/** The file behind a package's or our own entry, or undefined where there is none. */
export function resolveFrom(base: string, specifier: string): string | undefined {
  try {
    const path = createRequire(base).resolve(specifier)
    return existsSync(path) ? pathToFileURL(path).href : undefined
  } catch {
    return undefined
  }
}

const hooked = new Map<string, string>()
let installed = false

/**
 * The aliases hold for importers outside `node_modules` that were themselves reached through {@link loadModule}: they
 * carry our mark in their URL, and hand it on to the files they import beside them.
 */
function installHooks(aliases: ModuleAliases): void {
  for (const [name, url] of Object.entries(aliases)) hooked.set(name, url)
  if (installed) return
  installed = true
  registerHooks({
    resolve(specifier, context, next) {
      const mark = markOf(context.parentURL)
      if (mark === undefined) return next(specifier, context)
      const alias = hooked.get(specifier)
      if (alias !== undefined) return { url: alias, shortCircuit: true }
      const resolved = next(specifier, context)
      return /^\.\.?\//.test(specifier) ? { ...resolved, url: `${resolved.url}${mark}` } : resolved
    },
  })
}

function markOf(url: string | undefined): string | undefined {
  return url === undefined ? undefined : /\?tackle=[^&#]*$/.exec(url)?.[0]
}

function isRefusedSyntax(error: unknown): boolean {
  return systemCode(error) === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX"
}

async function loadThroughJiti(path: string, aliases: ModuleAliases): Promise<Record<string, unknown>> {
  const { createJiti } = await import("jiti")
  const alias = Object.fromEntries(Object.entries(aliases).map(([name, url]) => [name, fileURLToPath(url)]))
  const jiti = createJiti(import.meta.url, { alias, fsCache: false, moduleCache: false })
  return await jiti.import(path)
}

/** Extensions of files that hold a module. */
export const moduleExtensions: readonly string[] = [".js", ".mjs", ".ts", ".mts"]

/** True for a file that {@link loadModule} takes. Declarations are not modules. */
export function isModuleFile(name: string): boolean {
  return moduleExtensions.includes(extname(name)) && !/\.d\.m?ts$/.test(name)
}
