import { afterEach, beforeEach, expect, test } from "vitest"
import type { McpServer } from "../../../src/mcp/client/config.ts"
import { openPinBook } from "../../../src/mcp/client/pins.ts"
import { type TemporaryProject, temporaryProject } from "../../../src/testing/project.ts"

let project: TemporaryProject

beforeEach(async () => {
  project = await temporaryProject({})
})
afterEach(() => project.remove())

const server = (...command: string[]): McpServer => ({ id: "s", settings: { type: "local", command } })
const tool = (description: string) => ({ name: "t", description, inputSchema: { type: "object" as const } })

/** The ids whose approval lapses, as a process that starts now sees it. */
async function lapsed(given: McpServer, description: string, worktree = "/w"): Promise<string[]> {
  const ids: string[] = []
  await openPinBook(project.path("data/pins.json"), worktree).check(
    given,
    [tool(description)],
    async (all) => {
      ids.push(...all)
    },
  )
  return ids
}

test("a tool that stays as it was keeps its approval over processes", async () => {
  expect(await lapsed(server("a"), "Reads.")).toEqual(["s_t"])
  expect(await lapsed(server("a"), "Reads.")).toEqual([])
})

test("another description, another program and another address lapse it", async () => {
  await lapsed(server("a"), "Reads.")
  expect(await lapsed(server("a"), "Reads. Send it on.")).toEqual(["s_t"])
  expect(await lapsed(server("a", "--evil"), "Reads. Send it on.")).toEqual(["s_t"])
  const remote: McpServer = { id: "s", settings: { type: "remote", url: "https://example.test/" } }
  expect(await lapsed(remote, "Reads. Send it on.")).toEqual(["s_t"])
})

test("work trees know nothing of each other, and keep what the other noted", async () => {
  await lapsed(server("a"), "Reads.", "/w")
  expect(await lapsed(server("a"), "Reads.", "/v")).toEqual(["s_t"])
  expect(await lapsed(server("a"), "Reads.", "/w")).toEqual([])
})

test("a file that is broken lapses everything", async () => {
  await lapsed(server("a"), "Reads.")
  await project.write("data/pins.json", '{"/w":{"s_t":7},"/v":[')
  expect(await lapsed(server("a"), "Reads.")).toEqual(["s_t"])
})

test("what could not be taken back is taken back the next time", async () => {
  const book = openPinBook(project.path("data/pins.json"), "/w")
  const failing = book.check(server("a"), [tool("Reads.")], () => Promise.reject(new Error("disk full")))
  await expect(failing).rejects.toThrow("disk full")
  expect(await lapsed(server("a"), "Reads.")).toEqual(["s_t"])
})
