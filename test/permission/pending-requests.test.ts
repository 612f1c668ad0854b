import { expect, test } from "vitest"
import { createPendingRequests } from "../../src/permission/pending-requests.ts"
import type { RequestAnswer } from "../../src/schema/request.ts"

test("an answer of another process applies even if other requests cannot be checked then", async () => {
  const deliveries = new Map<string, (answer: RequestAnswer) => void>()
  const requests = createPendingRequests({
    publish() {},
    saveGrants: async () => {},
    dropGrants: async () => {},
    board: {
      share: ({ id }, deliver) => deliveries.set(id, deliver),
      settle: () => true,
      withdraw() {},
    },
  })
  const request = (id: string) => ({
    ...{
      id,
      sessionID: "ses_1",
      permission: "bash",
      patterns: ["ls"],
      always: ["ls"],
      rules: [],
      metadata: {},
    },
  })
  const first = requests.add(request("per_1"), "/w", async () => true)
  void requests.add(request("per_2"), "/w", () => Promise.reject(new Error("The store is closed.")))
  deliveries.get("per_1")?.({
    ...{ type: "permission", id: "ans_1", source: "user", reply: { reply: "always", scope: "session" } },
  })
  expect(await first).toMatchObject({ source: "user" })
  // An unhandled rejection would end the process.
  await new Promise((resolve) => setImmediate(resolve))
  expect(requests.list().map(({ id }) => id)).toEqual(["per_2"])
})
