import { whyRefused } from "./deciding-variables.ts"
import type { PluginHost } from "./host.ts"

/** Where a command runs, and for which call. */
export interface CommandPlace {
  cwd: string
  sessionID: string
  callID: string | undefined
}

/** The variables that plugins add to a command's. `leftOut` gets those that none may set, each with the reason. */
export async function variablesOfPlugins(
  plugins: PluginHost,
  place: CommandPlace,
  leftOut: (names: string[]) => void,
): Promise<Record<string, string>> {
  if (!plugins.has("shell.env")) return {}
  const { output } = await plugins.run("shell.env", { input: { ...place }, output: { env: {} } })
  const entries = Object.entries(output.env)
  const refused = entries.flatMap(([name]) => {
    const why = whyRefused(name)
    return why === undefined ? [] : [`${name} (it ${why})`]
  })
  if (refused.length > 0) leftOut(refused)
  return Object.fromEntries(entries.filter(([name]) => whyRefused(name) === undefined))
}
