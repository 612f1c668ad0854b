import { createHash } from "node:crypto"
import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { extname } from "node:path"
import { pathToFileURL } from "node:url"
import { systemCode } from "./errors.ts"
import { type ModuleGraph, openModuleGraph } from "./module-graph.ts"

/** What a user's module may import without having it installed: the name it writes → the URL of our own copy. */
export type ModuleAliases = Readonly<Record<string, string>>

/**
 * Imports a JavaScript or TypeScript file of the user. TypeScript runs as it is: by Node's own type stripping, and
 * where that refuses it (enums, parameter properties, packages in TypeScript) as jiti writes it. A name in `aliases` resolves to ours,
 * from that file and from what it imports beside it. `version` tells a changed file from the one loaded before; with
 * `pinned`, nothing runs but the very bytes that were hashed: see {@link ModuleGraph}. Throws what the module throws.
 */
export async function loadModule(
  path: string,
  { version = "1", ...graph }: Pick<ModuleGraph, "aliases" | "pinned"> & { version?: string },
): Promise<Record<string, unknown>> {
  const mark = graph.pinned ? digest([...graph.pinned].flat()) : version
  try {
    return await import(openModuleGraph(path, mark, graph))
  } catch (error) {
    if (!isRefusedSyntax(error)) throw error
  }
  const transform = await createTransform()
  const loaded = await import(openModuleGraph(path, `${mark}-transformed`, { ...graph, transform }))
  return loaded["module.exports"] ?? loaded
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

/** Node strips no types of what lies in `node_modules`. */
const refusals: ReadonlySet<string | undefined> = new Set([
  "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX",
  "ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING",
])

function isRefusedSyntax(error: unknown): boolean {
  return refusals.has(systemCode(error))
}

async function createTransform(): Promise<(source: string, path: string) => string> {
  const { createJiti } = await import("jiti")
  const jiti = createJiti(import.meta.url, { fsCache: false, moduleCache: false })
  return (source, filename) => jiti.transform({ source, filename, ts: true })
}

function digest(texts: readonly string[]): string {
  return createHash("sha256").update(texts.join("\n")).digest("hex").slice(0, 16)
}

/** Extensions of files that hold a module. */
export const moduleExtensions: readonly string[] = [".js", ".mjs", ".ts", ".mts"]

/** True for a file that {@link loadModule} takes. Declarations are not modules. */
export function isModuleFile(name: string): boolean {
  return moduleExtensions.includes(extname(name)) && !/\.d\.m?ts$/.test(name)
}
