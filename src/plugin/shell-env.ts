import type { PluginHost } from "./host.ts"

/** Where a command runs, and for which call. */
export interface CommandPlace {
  cwd: string
  sessionID: string
  callID: string | undefined
}

/**
 * Variables that decide which program a command's words stand for, or what it does before it begins. The rules were
 * asked about the command without them.
 */
const deciding = /^(?:PATH|ENV|IFS|SHELLOPTS|RIPGREP_CONFIG_PATH)$|^(?:LD|DYLD|BASH|GIT|TACKLE)_|^BASH/

/** The variables that plugins add to a command's. `leftOut` gets the names of those that none may set. */
export async function variablesOfPlugins(
  plugins: PluginHost,
  place: CommandPlace,
  leftOut: (names: string[]) => void,
): Promise<Record<string, string>> {
  if (!plugins.has("shell.env")) return {}
  const { output } = await plugins.run("shell.env", { input: { ...place }, output: { env: {} } })
  const refused = Object.keys(output.env).filter((name) => deciding.test(name))
  if (refused.length > 0) leftOut(refused)
  return Object.fromEntries(Object.entries(output.env).filter(([name]) => !deciding.test(name)))
}
