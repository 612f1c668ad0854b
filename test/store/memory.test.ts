import { createMemoryStore } from "../../src/store/memory.ts"
import { testControl } from "../suites/control.ts"
import { type LeasePlace, testLeases } from "../suites/leases.ts"
import { testStore } from "../suites/store.ts"

testStore("memory", async () => createMemoryStore())

testLeases("memory", openPlace)
testControl("memory", openPlace)

async function openPlace(): Promise<LeasePlace> {
  const stopped = new Set<string>()
  const store = createMemoryStore({ isAlive: ({ id }) => !stopped.has(id) })
  return {
    stores: [store, store, store],
    stop: async ({ id }) => void stopped.add(id),
    start: ({ id }) => void stopped.delete(id),
    close: () => store.close(),
  }
}
