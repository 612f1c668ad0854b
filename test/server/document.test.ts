import { readFileSync } from "node:fs"
import { resolve } from "node:path"
import { expect, expectTypeOf, test } from "vitest"
import type { z } from "zod"
import { apiDocument, apiPage } from "../../scripts/api-page.ts"
import type { TackleEvent } from "../../src/event/events.ts"
import { operationsOf, typeText } from "../../src/server/reference-page.ts"
import type { EventSchema } from "../../src/server/schemas/event-schemas.ts"
import { isRecord } from "../../src/util/json.ts"
import { setUp } from "./start-server.ts"

test("docs/api.md matches the routes; else run `node scripts/api-docs.ts`", () => {
  expect(readFileSync(resolve(import.meta.dirname, "../../docs/api.md"), "utf8")).toBe(apiPage())
})

test("describes the events as the engine publishes them", () => {
  expectTypeOf<z.infer<typeof EventSchema>>().toExtend<TackleEvent>()
  expectTypeOf<TackleEvent>().toExtend<z.infer<typeof EventSchema>>()
})

test("gives every operation a name, a summary, and responses whose references resolve", () => {
  const document = apiDocument()
  const operations = operationsOf(document)
  const names = operations.map(({ operation }) => operation.operationId)
  expect(new Set(names).size).toBe(operations.length)
  expect(operations.filter(({ operation }) => !operation.summary)).toEqual([])
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref = ""]) => ref)
  expect(references.length).toBeGreaterThan(50)
  for (const reference of references)
    expect(document.components.schemas, reference).toHaveProperty([
      reference.replace("#/components/schemas/", ""),
    ])
  expect(JSON.stringify(document)).not.toContain("x-named")
})

test("describes the messages, the header and the number of an event stream", () => {
  const { operation } =
    operationsOf(apiDocument()).find(({ path }) => path === "/session/{id}/event") ?? expect.fail()
  expect(typeText(operation.responses[200]?.content?.["text/event-stream"]?.schema)).toBe(
    "stream of SessionEvent | Reset",
  )
  const parameters = operation.parameters?.map(({ name, in: place, schema }) => [name, place, schema?.type])
  expect(parameters).toEqual([
    ["id", "path", "string"],
    ["after", "query", "integer"],
    ["last-event-id", "header", "string"],
  ])
})

test("protects all operations with a token, except those without data", () => {
  const open = operationsOf(apiDocument()).filter(({ operation }) => !operation.security)
  expect(open.map(({ path }) => path)).toEqual(["/login", "/logout", "/health"])
})

test("answers as the document describes", async () => {
  const { get, post, session } = await setUp(() => ({ text: "Hello." }))
  const path = await session()
  await post(`${path}/input`, { text: "Hi" })
  await post(`${path}/wait`)
  const { body: document } = await get("/openapi.json")
  expect(document.openapi).toBe("3.1.0")
  for (const [route, name] of [
    [path, "Session"],
    ["/health", "Health"],
  ] as const) {
    const { body } = await get(route)
    const { properties, required } = document.components.schemas[name]
    expect(Object.keys(properties)).toEqual(expect.arrayContaining(Object.keys(body)))
    expect(Object.keys(body)).toEqual(expect.arrayContaining(required))
  }
  expect(isRecord(document.paths["/session/{id}/input"].post.requestBody)).toBe(true)
})
