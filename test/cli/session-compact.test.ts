import { expect, test } from "vitest"
import { createMachine } from "./run-tackle.ts"

test("compacts a session of an earlier process, and reports the saving", async () => {
  const machine = await createMachine({
    script: [
      { text: "x ".repeat(2_000) },
      { text: "SUMMARY" },
      { text: "y ".repeat(10) },
      { text: "" },
      { text: "" },
    ],
  })
  expect((await machine.run(["session", "compact"])).code).toBe(2)
  await machine.run(["run", "say much"])
  const compacted = await machine.run(["session", "compact"])
  expect(compacted).toMatchObject({ code: 0, stderr: "" })
  expect(compacted.stdout).toMatch(
    /^Compacted ses_\w+: the model now reads \d+ characters instead of 4008\.\n$/,
  )
  await machine.run(["run", "-c", "and now?"])
  const told = JSON.stringify(machine.server.requests.at(-1)?.body.messages)
  expect([told.includes("SUMMARY"), told.includes("x x x")]).toEqual([true, false])
})

test("reports that there is nothing to compact, without a request to the model", async () => {
  const machine = await createMachine({ script: [{ text: "Hello." }] })
  await machine.run(["run", "hi"])
  const asked = machine.server.requests.length
  const { code, stdout, stderr } = await machine.run(["session", "compact"])
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
  expect(stdout).toMatch(
    /^Nothing to compact in ses_\w+, because a summary would not be shorter than the current \d+ characters\.\n$/,
  )
  expect(machine.server.requests).toHaveLength(asked)
  const json = await machine.run(["session", "compact", "--format", "json"])
  expect(JSON.parse(json.stdout)).toMatchObject({ pruned: 0, summarized: false })
})
