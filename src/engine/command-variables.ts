import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { commandEnvironment } from "../permission/shell/read-only-proof.ts"
import type { Plugins } from "../plugin/plugins.ts"
import type { CommandLocation } from "../plugin/shell-env.ts"
import type { TackleOptions } from "./options.ts"
import { keyVariables, storageKeyVariables } from "./secrets.ts"

type Variables = Readonly<Record<string, string | undefined>>

/**
 * Returns the environment variables that programs receive. These are the variables in `environment`, without Tackle's
 * own settings (`TACKLE_…`) and without the keys for providers, for search services and, if the `contents` option is
 * set, for the storage of file contents. Keys that the `passEnvironment` option lists are included.
 */
export function commandVariables(
  options: TackleOptions,
  environment: Variables,
): Record<string, string | undefined> {
  const keys = new Set(keyVariables(options.providers))
  if (options.contents) for (const name of storageKeyVariables) keys.add(name)
  for (const name of options.passEnvironment ?? []) keys.delete(name)
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => !name.startsWith("TACKLE_") && !keys.has(name)),
  )
}

/**
 * Returns a function that computes the variables for a command: the shared variables, variables set by plugins, and
 * variables that make read-only git commands safe.
 */
export function perCommand(variables: Variables, plugins: Pick<Plugins, "variables"> | undefined) {
  return async (command: string, place: CommandLocation) => ({
    ...variables,
    ...(await plugins?.variables(place)),
    ...(await commandEnvironment(command)),
  })
}

/**
 * Returns `variables` with additions for external tools: Python can find Tackle's helper module, and does not write
 * into the private copy of a tool.
 */
export function programVariables(variables: Variables) {
  const found = ["../python", "../../python", "../../../python"].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  )
  const helpers = found.find((path) => existsSync(join(path, "tackle_tool.py")))
  const { PYTHONPATH: own } = variables
  const path = [...(helpers === undefined ? [] : [helpers]), ...(own ? [own] : [])].join(delimiter)
  return { ...variables, ...(path === "" ? {} : { PYTHONPATH: path }), PYTHONDONTWRITEBYTECODE: "1" }
}
