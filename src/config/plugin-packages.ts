import { join } from "node:path"
import { findPackageRoot, isPluginPath, providedPackages } from "../plugin/source.ts"
import { configDirectories } from "./config-directories.ts"
import type { ConfigFile } from "./config-files.ts"
import type { Location } from "./location.ts"
import { entryOf, toPlain } from "./node.ts"
import { treeOf } from "./parse.ts"

/** A place that has the data directory too. */
type PluginLocation = Location & { dataDirectory: string }

/**
 * Where a package that a config file names is looked for: what the person installed comes first; only for what a file of
 * the project names, the project's own.
 */
export function packageDirectories(
  location: PluginLocation,
  { path, scope }: Pick<ConfigFile, "path" | "scope">,
): string[] {
  const directories = configDirectories(location)
  const of = (wanted: typeof scope) =>
    directories.filter((each) => each.scope === wanted).map((each) => each.path)
  const user = [...of("user").reverse(), join(location.dataDirectory, "plugin")]
  return scope === "project" ? [...user, ...of("project").reverse(), join(path, "..")] : user
}

/**
 * The packages that a config file of the project names as plugins, as far as they are installed. A name that is put in
 * (`{env:…}`) is none: nobody could say yes to it. One that cannot be parsed names none.
 */
export async function namedPackages(
  file: Pick<ConfigFile, "path" | "scope"> & { text: string },
  location: PluginLocation,
): Promise<{ name: string; root: string; provided: readonly string[] }[]> {
  const tree = await treeOf(file.path, file.text)
  const value = entryOf(tree, "plugin")?.value
  const named = value === undefined ? [] : toPlain(value)
  const entries: unknown[] = Array.isArray(named) ? named : []
  const directories = packageDirectories(location, file)
  return entries.flatMap((entry) => {
    const spec: unknown = Array.isArray(entry) ? entry[0] : entry
    if (typeof spec !== "string" || isPluginPath(spec)) return []
    const found = findPackageRoot(spec, directories)
    return found ? { ...found, provided: providedPackages } : []
  })
}
