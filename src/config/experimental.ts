import type { Config } from "./schema.ts"

/** The experimental features that are on. */
export interface ExperimentalSwitches {
  batchTool: boolean
}

/**
 * What the environment says wins over the config: `TACKLE_EXPERIMENTAL_BATCH_TOOL` for one feature, and
 * `TACKLE_EXPERIMENTAL` for all it says nothing of. `1` or `true` is on, anything else off.
 */
export function experimentalSwitches(
  config: Config["experimental"],
  environment: Readonly<Record<string, string | undefined>>,
): ExperimentalSwitches {
  const isOn = (feature: string, configured: boolean | undefined) => {
    const value = environment[`TACKLE_EXPERIMENTAL_${feature}`] ?? environment.TACKLE_EXPERIMENTAL
    return value === undefined || value === "" ? configured === true : ["1", "true"].includes(value)
  }
  return { batchTool: isOn("BATCH_TOOL", config?.batch_tool) }
}
