import { expect, test } from "vitest"
import { createPendingRequests } from "../../src/permission/pending-requests.ts"
import type { PermissionReply } from "../../src/schema/permission.ts"
import type { RequestAnswer } from "../../src/schema/request.ts"

/** Returns the answer to a request that another process answers with "always". */
async function answeredElsewhere(
  reply: RequestAnswer & { type: "permission" },
  saveGrants: () => Promise<void>,
) {
  let deliver: ((answer: RequestAnswer) => void) | undefined
  const requests = createPendingRequests({
    publish() {},
    saveGrants,
    dropGrants: async () => {},
    board: {
      share(_, given) {
        deliver = given
      },
      settle: () => true,
      withdraw() {},
    },
  })
  const names = { id: "per_1", sessionID: "ses_1", permission: "bash" }
  const answer = requests.add(
    { ...names, patterns: ["ls"], always: ["ls"], rules: [], metadata: {} },
    "/w",
    async () => true,
  )
  deliver?.(reply)
  return answer
}

test("a request allowed elsewhere is allowed once if the permission for later requests cannot be stored", async () => {
  const reply = {
    type: "permission",
    id: "ans_1",
    source: "user",
    reply: { reply: "always", scope: "session" },
  } as const
  const answer = await answeredElsewhere(reply, () => Promise.reject(new Error("disk full")))
  expect(answer).toEqual({ reply: { reply: "once" }, source: "user" })
})

test("a stored answer that allows more than the request offers is a refusal", async () => {
  const wide: PermissionReply = { reply: "always", scope: "session", patterns: ["*"] }
  const answer = await answeredElsewhere(
    { type: "permission", id: "ans_1", source: "user", reply: wide },
    async () => {},
  )
  expect(answer).toEqual({ reply: { reply: "reject" }, source: "user" })
})

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
