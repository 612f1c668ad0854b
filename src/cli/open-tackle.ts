import { keyVariables } from "../call/known-secrets.ts"
import type { LoadedConfig } from "../config/load.ts"
import { shownName, wholeName } from "../config/shown-name.ts"
import type { TackleOptions } from "../engine/options.ts"
import { createTackle } from "../engine/runtime.ts"
import type { Tackle } from "../engine/tackle.ts"
import { engineOptions } from "./engine-options.ts"
import { eventLogger } from "./log-events.ts"
import { warn } from "./notice.ts"
import { misspeltPermissions } from "./permission-names.ts"
import type { Place } from "./place.ts"
import type { RuleFlags } from "./rule-layers.ts"

/** An engine for the place. `overrides` come last. */
export async function openTackle(
  place: Place,
  flags: RuleFlags,
  overrides: Partial<TackleOptions> = {},
): Promise<Tackle> {
  keepKeysFromChildren(place.config.config)
  const tackle = await createTackle({ ...(await engineOptions(place, flags)), ...overrides })
  tackle.subscribe(eventLogger(place.log))
  for (const { file, message } of tackle.problems()) warn(place.hide(`${wholeName(file)}: ${message}`))
  tellIgnored(place)
  for (const line of misspeltPermissions(place, flags)) warn(line)
  return tackle
}

/**
 * Custom tools run in this process and start programs with its environment. From here on keys are in our own copy alone,
 * unless the config passes them on.
 */
function keepKeysFromChildren({ provider, pass_environment: passed = [] }: LoadedConfig["config"]): void {
  for (const name of keyVariables(provider)) if (!passed.includes(name)) delete process.env[name]
}

function tellIgnored({ config, untrusted }: Place): void {
  const files = untrusted.filter(({ kind }) => kind !== "config").map(({ path }) => shownName(path))
  const ignored = [...config.ignored, ...files]
  if (ignored.length === 0) return
  warn(
    `this project is not trusted as it is now, so these do not count: ${ignored.join("; ")}. \`tackle trust\` shows and enables them.`,
  )
}
