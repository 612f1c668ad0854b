import { createMemoryStore } from "../../src/store/memory.ts"
import { testStore } from "../suites/store.ts"

testStore("memory", async () => createMemoryStore())
