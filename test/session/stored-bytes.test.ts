import { stat } from "node:fs/promises"
import { expect, test } from "vitest"
import { openSqliteStore } from "../../src/store/sqlite.ts"
import type { Change, Store } from "../../src/store/store.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import type { Reply } from "../../src/testing/reply.ts"
import { startEngine } from "./engine.ts"
import { run } from "./run.ts"

const streamed = 35_000

/** Returns the bytes that a run writes to the store, and the size of its database afterwards. */
async function bytesOf(script: Reply[]): Promise<{ committed: number; file: number }> {
  const project = await temporaryProject()
  const path = project.path("tackle.db")
  const opened = await openSqliteStore(path)
  let committed = 0
  const store: Store = {
    ...opened,
    commit(changes: readonly Change[]) {
      committed += JSON.stringify(changes).length
      return opened.commit(changes)
    },
  }
  await using engine = await startEngine(script, { store, permission: { "*": "allow" }, sandbox: "off" })
  expect((await run(engine)).end.status).toBe("completed")
  await opened.close()
  const { size } = await stat(path)
  await project.remove()
  return { committed, file: size }
}

const printing = (bytes: number): Reply[] => [
  {
    calls: [
      {
        name: "bash",
        arguments: {
          command: `for i in $(seq ${bytes / 100}); do printf '%099d\\n' $i; sleep 0.001; done`,
          description: "Print",
        },
      },
    ],
  },
  { text: "done" },
]

test("writes a streamed answer once or twice, not in pieces", async () => {
  const answer = (bytes: number): Reply[] => [
    { text: "word ".repeat(bytes / 5), pieceSize: 16, pieceDelayMs: 0.1 },
  ]
  const [little, much] = [await bytesOf(answer(100)), await bytesOf(answer(streamed))]
  expect(much.committed - little.committed).toBeGreaterThan(streamed - 1_000)
  expect(much.committed - little.committed).toBeLessThan(2 * streamed)
  expect(much.file - little.file).toBeLessThan(3 * streamed)
})

test("stores 35 KB of command output in at most three times the size", async () => {
  const [little, much] = [await bytesOf(printing(100)), await bytesOf(printing(streamed))]
  expect(much.file - little.file).toBeGreaterThan(streamed - 5_000)
  expect(much.file - little.file).toBeLessThan(3 * streamed)
})
