import type { Credentials } from "../model/credentials.ts"
import { createModels, type Models } from "../model/providers.ts"
import { openToolMemory } from "../model/tool-memory.ts"
import type { Plugins } from "../plugin/open.ts"
import type { TackleOptions } from "./options.ts"
import type { EnginePlace } from "./place.ts"

/** The models that can be named: those of the known providers and of the options'. Asks none of them. */
export function openModels(
  { providers = {}, fetch }: TackleOptions,
  credentials: Credentials,
  plugins: Plugins | undefined,
  { environment, dataDirectory }: Pick<EnginePlace, "environment" | "dataDirectory">,
): Models {
  return createModels({
    config: providers,
    credentials,
    environment,
    toolMemory: openToolMemory(dataDirectory),
    ...(fetch === undefined ? {} : { fetch }),
    ...(plugins === undefined ? {} : { signedIn: (provider) => plugins.signedIn(provider, credentials) }),
  })
}
