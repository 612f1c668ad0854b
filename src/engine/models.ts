import type { Credentials } from "../model/credentials.ts"
import { createModels, type Models } from "../model/providers.ts"
import { openToolMemory } from "../model/tool-memory.ts"
import type { Plugins } from "../plugin/open.ts"
import type { TackleOptions } from "./options.ts"
import type { EnginePlace } from "./place.ts"

/** The models that can be named: those of the known providers and of the options'. Asks none of them. */
export function openModels(
  { providers = {}, fetch, aroundFetch, recorded }: TackleOptions,
  credentials: Credentials,
  plugins: Plugins | undefined,
  { environment, dataDirectory }: Pick<EnginePlace, "environment" | "dataDirectory">,
): Models {
  // Who wrote down what is played back may have named the providers and their addresses: no key is for them.
  const isPlayedBack = recorded !== undefined
  return createModels({
    config: providers,
    credentials: isPlayedBack ? pretendedKeys : credentials,
    environment,
    toolMemory: openToolMemory(dataDirectory),
    ...(fetch === undefined ? {} : { fetch }),
    ...(aroundFetch === undefined ? {} : { aroundFetch }),
    ...(plugins === undefined || isPlayedBack
      ? {}
      : { signedIn: (provider) => plugins.signedIn(provider, credentials) }),
  })
}

/** Nobody reads them, but without one a provider is not asked. */
const pretendedKeys: Pick<Credentials, "key"> = { key: async () => "none" }
