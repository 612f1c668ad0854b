import { dirname, join } from "node:path"
import { configDirectories, possibleConfigDirectories } from "../../config/location.ts"
import { packageDirectories } from "../../config/project-trust-items.ts"
import { wholeName } from "../../config/shown-name.ts"
import type { DefinitionProblem } from "../../engine/definitions.ts"
import { type FoundItem, packageItem } from "../../permission/trust-items.ts"
import {
  findPackage,
  findPluginFiles,
  isPluginPath,
  type PluginSource,
  pluginFolders,
  pluginPath,
} from "../../plugin/source.ts"
import { errorMessage, UsageError } from "../../util/errors.ts"
import { fileStamp, stampFiles } from "../../util/file-stamp.ts"
import { isModuleFile } from "../../util/load-module.ts"
import { isInside, realPath } from "../../util/paths.ts"
import { warn } from "../process/notice.ts"
import type { Workspace } from "./workspace.ts"

type NamedPlugin = Workspace["config"]["plugins"][number]

/**
 * The plugins of the place in the order in which they are called: what the config files name, in rising precedence, then
 * the files of the config directories. Of a project only what is trusted (`trusted` are its plugin files). Of what is
 * named twice the place of the first and the options of the last count. One that is not there is told on stderr.
 */
export function trustedPlugins(workspace: Workspace, trusted: readonly FoundItem[]): PluginSource[] {
  const pinned = new Map(trusted.flatMap(({ contents }) => [...contents]))
  const allowed = new Set(trusted.map(({ file }) => file))
  const found = new Map<string, PluginSource>()
  const add = (source: PluginSource) => found.set(source.path, { ...found.get(source.path), ...source })

  function ofPath(path: string, { scope }: NamedPlugin): PluginSource {
    // What the person's own config names is their own word. A link back into the project leads to what is the project's.
    const ofProject =
      isInside(path, workspace.worktree) || isInside(realPath(path), realPath(workspace.worktree))
    if (scope !== "project" || !ofProject) return { name: path, path }
    if (allowed.has(path)) return { name: path, path, pinned }
    throw new UsageError(
      "trust covers no file outside the folders plugin/ and plugins/ of .tackle and .opencode: put it there.",
    )
  }

  function ofPackage(source: PluginSource, { scope }: NamedPlugin): PluginSource {
    if (scope !== "project") return source
    const item = trusted.find(({ path }) => path === packageItem(source.name))
    if (item) return { ...source, pinned: item.contents, ...heldBy(item) }
    throw new UsageError(
      "the package is not trusted as it is installed now. `tackle trust` shows and enables it.",
    )
  }

  function resolveNamed(named: NamedPlugin): PluginSource {
    const { spec, options } = named
    if (!isPluginPath(spec)) return ofPackage(findPackage(named, packageDirectories(workspace, named)), named)
    const directory = named.scope === "env" ? workspace.directory : dirname(named.path)
    return {
      ...ofPath(pluginPath(spec, { directory, home: workspace.home }), named),
      ...(options ? { options } : {}),
    }
  }

  for (const named of workspace.config.plugins) {
    try {
      add(resolveNamed(named))
    } catch (error) {
      warn(`${wholeName(named.path)}: plugin ${wholeName(named.spec)}: ${errorMessage(error)}`)
    }
  }
  for (const { path: directory, scope } of configDirectories(workspace)) {
    for (const path of findPluginFiles([directory])) {
      if (scope === "user") add({ name: path, path })
      else if (allowed.has(path)) add({ name: path, path, pinned })
    }
  }
  return [...found.values()]
}

function heldBy({ dependencies }: FoundItem): Pick<PluginSource, "held"> {
  if (!dependencies || dependencies.roots.length === 0) return {}
  return { held: { roots: dependencies.roots, files: new Map(dependencies.contents) } }
}

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
export function watchPlugins(workspace: Workspace, loaded: readonly PluginSource[]): PluginChanges {
  const named = loaded.filter((source) => !source.package).map(({ path }) => path)
  const found = workspace.items.filter(
    ({ kind, dependencies }) => kind === "plugin" && dependencies === undefined,
  )
  const begun = stampFiles([...named, ...found.map(({ file }) => file).filter(isModuleFile)])
  // Looked for when they are asked for: most runs have no plugins, and are to begin without this.
  const directories = () => possibleConfigDirectories(workspace).map(({ path }) => path)
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
