import { expect, test } from "vitest"
import { setUp } from "./start-server.ts"

test("runs a prompt and returns the messages", async () => {
  const { post, get, session, problems } = await setUp([{ text: "Hello." }])
  const path = await session()
  const sent = await post(`${path}/input`, { text: "Hi", id: "one" })
  expect(sent).toMatchObject({ status: 202, body: { id: "one", state: "pending", seq: expect.any(Number) } })
  const waited = await post(`${path}/wait`)
  expect(waited.body).toMatchObject({ status: "idle", run: { status: "completed", text: "Hello." } })
  const { body } = await get(`${path}/message`)
  expect(body.items.map(({ message }: { message: { role: string } }) => message.role)).toEqual([
    "user",
    "assistant",
  ])
  expect((await get(path)).body).toMatchObject({ status: "idle", title: "Hi", seq: expect.any(Number) })
  expect(problems).toEqual([])
})
