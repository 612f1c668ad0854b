import { maskStore } from "../session/masked-store.ts"
import type { Store } from "../store/store.ts"
import type { SecretMask } from "../tool/secrets.ts"

/** The store of an engine: opened after its plugins, which say what has to be hidden in it, and closed after them. */
export interface EngineStore {
  /** Nothing that the mask hides is stored. Throws what the database says. */
  open(mask: SecretMask): Promise<Store>
  /** Undefined until it is open. */
  current(): Store | undefined
  /** Leaves a store alone that was given. */
  close(): Promise<void>
}

/** Over the store that was given, else over SQLite in the file. */
export function createEngineStore(given: Store | undefined, database: string): EngineStore {
  let own: Store | undefined
  let current: Store | undefined

  return {
    async open(mask) {
      const store = given ?? (await openSqlite(database))
      if (store !== given) own = store
      current = maskStore(store, mask)
      return current
    },
    current: () => current,
    async close() {
      await own?.close()
    },
  }
}

/** Loaded when it is needed: not every engine has a database. */
async function openSqlite(database: string): Promise<Store> {
  const { openSqliteStore } = await import("../store/sqlite.ts")
  return openSqliteStore(database)
}
