import { expect, test } from "vitest"
import { startEngine } from "../session/engine.ts"
import { resultsOf, run } from "../session/run.ts"

const files = {
  "open.txt": "needle in the open\n",
  "private/diary.txt": "needle of the diary\n",
  "ask/letter.txt": "needle of the letter\n",
  ".env": "KEY=needle-of-env\n",
  "server.pem": "needle of the key\n",
}

test("hides matches in files that read would refuse or ask for", async () => {
  await using engine = await startEngine(
    [
      { calls: [{ name: "grep", arguments: { pattern: "needle" } }] },
      { calls: [{ name: "grep", arguments: { pattern: "needle", path: "private/diary.txt" } }] },
      { text: "Done." },
    ],
    { files, permission: { read: { "private/*": "deny", "ask/*": "ask" } } },
  )
  const { session } = await run(engine)
  const [found, named] = await resultsOf(session)
  expect(found).toContain("needle in the open")
  expect(found).not.toMatch(/diary|letter|needle-of-env|of the key/)
  expect(found).toContain("(Omitted 2 files with matches, because reading them requires permission.")
  expect(named).toMatch(/^Error: .*private/)
})

test("finds everything else without such rules", async () => {
  await using engine = await startEngine(
    [{ calls: [{ name: "grep", arguments: { pattern: "needle" } }] }, { text: "Done." }],
    { files },
  )
  const { session } = await run(engine)
  const [found] = await resultsOf(session)
  expect(found).toContain("needle of the diary")
  expect(found).not.toMatch(/needle-of-env|of the key/)
})
