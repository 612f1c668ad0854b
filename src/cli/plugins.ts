import { dirname, join } from "node:path"
import { configDirectories } from "../config/locate.ts"
import { wholeName } from "../config/shown-name.ts"
import type { FoundItem } from "../permission/trust-items.ts"
import {
  findPackage,
  findPluginFiles,
  isPluginPath,
  type PluginSource,
  pluginPath,
} from "../plugin/source.ts"
import { errorMessage, UsageError } from "../util/errors.ts"
import { isInside, realPath } from "../util/paths.ts"
import { warn } from "./notice.ts"
import type { Place } from "./setup.ts"

type NamedPlugin = Place["config"]["plugins"][number]

/**
 * The plugins of the place in the order in which they are called: what the config files name, in rising precedence, then
 * the files of the config directories. Of a project only what is trusted (`trusted` are its plugin files). Of what is
 * named twice the place of the first and the options of the last count. One that is not there is told on stderr.
 */
export function trustedPlugins(place: Place, trusted: readonly FoundItem[]): PluginSource[] {
  const pinned = new Map(trusted.flatMap(({ contents }) => [...contents]))
  const allowed = new Set(trusted.map(({ file }) => file))
  const found = new Map<string, PluginSource>()
  const add = (source: PluginSource) => found.set(source.path, { ...found.get(source.path), ...source })

  function ofPath(path: string, { scope }: NamedPlugin): PluginSource {
    // What the person's own config names is their own word. A link back into the project leads to what is the project's.
    const ofProject = isInside(path, place.worktree) || isInside(realPath(path), realPath(place.worktree))
    if (scope !== "project" || !ofProject) return { name: path, path }
    if (allowed.has(path)) return { name: path, path, pinned }
    throw new UsageError(
      "trust covers no file outside the folders plugin/ and plugins/ of .tackle and .opencode: put it there.",
    )
  }

  function resolveNamed(named: NamedPlugin): PluginSource {
    const { spec, options } = named
    if (!isPluginPath(spec)) return findPackage(named, packageDirectories(place, named))
    const directory = named.scope === "env" ? place.directory : dirname(named.path)
    return {
      ...ofPath(pluginPath(spec, { directory, home: place.home }), named),
      ...(options ? { options } : {}),
    }
  }

  for (const named of place.config.plugins) {
    try {
      add(resolveNamed(named))
    } catch (error) {
      warn(`${wholeName(named.path)}: plugin ${wholeName(named.spec)}: ${errorMessage(error)}`)
    }
  }
  for (const { path: directory, scope } of configDirectories(place)) {
    for (const path of findPluginFiles([directory])) {
      if (scope === "user") add({ name: path, path })
      else if (allowed.has(path)) add({ name: path, path, pinned })
    }
  }
  return [...found.values()]
}

/** What the person installed comes first; only for what a trusted file of the project names, the project's own. */
function packageDirectories(place: Place, { path, scope }: NamedPlugin): string[] {
  const directories = configDirectories(place)
  const of = (wanted: typeof scope) =>
    directories.filter((each) => each.scope === wanted).map((each) => each.path)
  const user = [...of("user").reverse(), join(place.dataDirectory, "plugin")]
  return scope === "project" ? [...user, ...of("project").reverse(), dirname(path)] : user
}
