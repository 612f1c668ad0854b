import { join } from "node:path"
import { possibleConfigDirectories } from "../config/config-directories.ts"
import type { DefinitionProblem } from "../engine/live-definitions.ts"
import { findPluginFiles, type PluginSource, pluginFolders } from "../plugin/source.ts"
import { fileStamp, stampFiles } from "../util/file-stamp.ts"
import { isModuleFile } from "../util/load-module.ts"
import type { Place } from "./place.ts"

/** The files of plugins, of which it is only told that they changed: plugins are loaded once. */
export interface PluginChanges {
  /** Those of the start, as absolute paths. */
  begun: readonly string[]
  /** Absolute paths of files and folders, there or not. */
  watched(): string[]
  /** What differs from what the run began with. */
  problems(): DefinitionProblem[]
}

/**
 * Compares with the files as they are now: of the folders for plugins, and those of `loaded` beside them. Packages are left
 * out: they are installed, not edited.
 */
export function watchPlugins(place: Place, loaded: readonly PluginSource[]): PluginChanges {
  const named = loaded.filter((source) => !source.package).map(({ path }) => path)
  const found = place.items.filter(
    ({ kind, dependencies }) => kind === "plugin" && dependencies === undefined,
  )
  const begun = stampFiles([...named, ...found.map(({ file }) => file).filter(isModuleFile)])
  // Looked for when they are asked for: most runs have no plugins, and are to begin without this.
  const directories = () => possibleConfigDirectories(place).map(({ path }) => path)
  const files = () => [...new Set([...begun.keys(), ...findPluginFiles(directories())])]
  return {
    begun: [...begun.keys()],
    watched: () => [
      ...directories().flatMap((path) => pluginFolders.map((folder) => join(path, folder))),
      ...files(),
    ],
    problems: () =>
      files().flatMap((file) => {
        const before = begun.get(file)
        const now = fileStamp(file)
        if (before === now) return []
        const what = before === undefined ? "it is new" : now === "" ? "it is gone" : "it has changed"
        return [{ file, message: `${what}. Plugins are loaded once: that counts from the next start on.` }]
      }),
  }
}
