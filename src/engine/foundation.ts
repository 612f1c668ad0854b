import { storedSecrets } from "../call/known-secrets.ts"
import { createTemporaryFileJournal, type TemporaryFileJournal } from "../files/temporary-files.ts"
import { type Credentials, createCredentials } from "../model/credentials.ts"
import type { Plugins } from "../plugin/open.ts"
import { createPlaceholderBook, type PlaceholderBook } from "../sandbox/placeholder-book.ts"
import { settleKilled } from "../session/restore.ts"
import type { Store } from "../store/store.ts"
import { createSecretMask, type SecretMask } from "../tool/secrets.ts"
import { createProcessJournal, type ProcessJournal } from "../util/process-journal.ts"
import { commandVariables } from "./command-variables.ts"
import { type DataPlaces, dataPlaces } from "./data-directory.ts"
import { createEngineStore } from "./engine-store.ts"
import { openPlugins } from "./open-plugins.ts"
import type { TackleOptions } from "./options.ts"
import { type EnginePlace, placeOf } from "./place.ts"
import { readSecrets } from "./secrets.ts"

/** What all else in an engine stands on. */
export interface Foundation {
  /** The options as they were before plugins had them. */
  given: TackleOptions
  /** As the plugins leave them. */
  options: TackleOptions
  place: EnginePlace
  places: DataPlaces
  /** The environment of the programs that the engine starts. */
  variables: Readonly<Record<string, string | undefined>>
  /** What is written down of the programs and files that must not outlive the engine. */
  processes: ProcessJournal
  temporaries: TemporaryFileJournal
  placeholders: PlaceholderBook
  mask: SecretMask
  credentials: Credentials
  /** Gets secrets that come up while the engine is open, such as renewed tokens. */
  onSecrets(secrets: Record<string, string>): void
  plugins: Plugins | undefined
  store: Store
}

/**
 * Finds out where the engine works and what is secret, and opens its plugins and store. What has to end is put into
 * `opening`.
 */
export async function layFoundation(
  given: TackleOptions,
  opening: AsyncDisposableStack,
): Promise<Foundation> {
  const place = placeOf(given)
  const { environment, directory, worktree, dataDirectory, onProblem } = place
  const places = dataPlaces(dataDirectory)
  const processes = createProcessJournal(places.processes, onProblem)
  opening.defer(() => processes.clear())
  const temporaries = createTemporaryFileJournal(places.temporaries, onProblem)
  const placeholders = createPlaceholderBook(places.placeholders, onProblem)

  const mask = given.mask ?? createSecretMask()
  const onSecrets = (secrets: Record<string, string>) => mask.add(storedSecrets(secrets))
  const credentials = createCredentials({ environment, authFile: places.auth, onSecrets })

  // Plugins change the options and with them what is secret, so that they come before the store is opened.
  const engineStore = createEngineStore(given.store, places.database)
  opening.defer(() => engineStore.close())
  const { plugins, options, ...loaded } = await openPlugins(given, {
    directory,
    worktree,
    environment: commandVariables(given, environment),
    record: processes.add,
    store: engineStore.current,
    saveAuth: credentials.save,
    onProblem,
  })
  opening.defer(() => loaded.close())
  mask.add(await readSecrets(options, { environment, credentials, mcpTokens: places.mcpTokens }))
  const store = await engineStore.open(mask)
  await settleKilled(store).catch((error: unknown) =>
    onProblem("what became of the calls of killed runs could not be stored", error),
  )
  return {
    given,
    options,
    place,
    places,
    variables: commandVariables(options, environment),
    processes,
    temporaries,
    placeholders,
    mask,
    credentials,
    onSecrets,
    plugins,
    store,
  }
}
