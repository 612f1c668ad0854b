import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { configDirectories, possibleConfigDirectories } from "../../config/location.ts"
import { packageDirectories } from "../../config/project-trust-items.ts"
import { wholeName } from "../../config/shown-name.ts"
import type { DefinitionProblem } from "../../engine/definitions.ts"
import { type FoundItem, packageItem } from "../../permission/trust.ts"
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
 * Lists the plugins in call order: the plugins listed in config files, in order of increasing precedence, then the
 * files in the config directories. `trusted` contains the project's trusted plugin files. If a plugin is listed more
 * than once, its first position and its last options apply. On stderr, reports listed plugins that cannot be used.
 */
export function trustedPlugins(workspace: Workspace, trusted: readonly FoundItem[]): PluginSource[] {
  const pinned = new Map(trusted.flatMap(({ contents }) => [...contents]))
  const allowed = new Set(trusted.map(({ file }) => file))
  const found = new Map<string, PluginSource>()
  const add = (source: PluginSource) => found.set(source.path, { ...found.get(source.path), ...source })

  function ofPath(path: string, { scope }: NamedPlugin): PluginSource {
    // Trust is required only for a plugin inside the project that the project's config lists.
    const ofProject =
      isInside(path, workspace.worktree) || isInside(realPath(path), realPath(workspace.worktree))
    if (scope !== "project" || !ofProject) return { name: path, path }
    if (allowed.has(path)) return { name: path, path, pinned }
    if (!existsSync(path)) throw new UsageError("the file does not exist.")
    if (workspace.items.some(({ kind, file }) => kind === "plugin" && file === path))
      throw new UsageError("the file is not trusted. Run `tackle trust` to review and enable it.")
    throw new UsageError(
      "only plugins in the plugin/ and plugins/ directories of .tackle and .opencode can be trusted. Move the file to one of them.",
    )
  }

  function ofPackage(source: PluginSource, { scope }: NamedPlugin): PluginSource {
    if (scope !== "project") return source
    const item = trusted.find(({ path }) => path === packageItem(source.name))
    if (item) return { ...source, pinned: item.contents, ...pinnedPackagesOf(item) }
    throw new UsageError(
      "the installed version of the package is not trusted. Run `tackle trust` to review and enable it.",
    )
  }

  function resolveNamed(named: NamedPlugin): PluginSource {
    const { spec, options } = named
    if (!isPluginPath(spec)) return ofPackage(findPackage(named, packageDirectories(workspace, named)), named)
    const directory = named.scope === "env" ? workspace.directory : dirname(named.path)
    return {
      ...ofPath(pluginPath(spec, { directory, home: workspace.home }), named),
      options,
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

function pinnedPackagesOf({ dependencies }: FoundItem): Pick<PluginSource, "pinnedPackages"> {
  if (!dependencies || dependencies.roots.length === 0) return {}
  return { pinnedPackages: { roots: dependencies.roots, files: new Map(dependencies.contents) } }
}

/** A watcher of plugin files. Plugins are loaded once, so changes are only reported. */
export interface PluginChanges {
  /** Absolute paths of the plugin files at startup. */
  begun: readonly string[]
  /** Returns the absolute paths to watch, including paths that do not exist. */
  watched(): string[]
  /** Returns a problem for each plugin file that was added, changed or removed since startup. */
  problems(): DefinitionProblem[]
}

/**
 * Compares the current plugin files with those at startup. Ignores packages, because users install rather than edit
 * them.
 */
export function watchPlugins(workspace: Workspace, loaded: readonly PluginSource[]): PluginChanges {
  const named = loaded.filter((source) => !source.package).map(({ path }) => path)
  const found = workspace.items.filter(
    ({ kind, dependencies }) => kind === "plugin" && dependencies === undefined,
  )
  const begun = stampFiles([...named, ...found.map(({ file }) => file).filter(isModuleFile)])
  // Computed on demand, because most runs have no plugins and should start without this work.
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
        const what = before === undefined ? "it is new" : now === "" ? "it was removed" : "it has changed"
        return [
          {
            file,
            message: `${what}. Plugins are loaded only at startup, so the change takes effect at the next start.`,
          },
        ]
      }),
  }
}
