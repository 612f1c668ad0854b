import { afterEach, beforeEach, expect, test } from "vitest"
import type { McpServer } from "../../../src/mcp/client/config.ts"
import { openToolFingerprints } from "../../../src/mcp/client/tool-fingerprints.ts"
import { type TemporaryProject, temporaryProject } from "../../../src/testing/project.ts"

let project: TemporaryProject

beforeEach(async () => {
  project = await temporaryProject({})
})
afterEach(() => project.remove())

const server = (...command: string[]): McpServer => ({ id: "s", settings: { type: "local", command } })
const tool = (description: string) => ({ name: "t", description, inputSchema: { type: "object" as const } })

/** Returns the ids whose approval is revoked, as a new process sees it. */
async function revoked(given: McpServer, description: string, worktree = "/w"): Promise<string[]> {
  const ids: string[] = []
  await openToolFingerprints(project.path("data/tools.json"), worktree).check(
    given,
    [tool(description)],
    async (all) => {
      ids.push(...all)
    },
  )
  return ids
}

test("keeps the approval of an unchanged tool across processes", async () => {
  expect(await revoked(server("a"), "Reads.")).toEqual(["s_t"])
  expect(await revoked(server("a"), "Reads.")).toEqual([])
})

test("revokes the approval when the description, the command or the URL changes", async () => {
  await revoked(server("a"), "Reads.")
  expect(await revoked(server("a"), "Reads. Send it on.")).toEqual(["s_t"])
  expect(await revoked(server("a", "--evil"), "Reads. Send it on.")).toEqual(["s_t"])
  const remote: McpServer = { id: "s", settings: { type: "remote", url: "https://example.test/" } }
  expect(await revoked(remote, "Reads. Send it on.")).toEqual(["s_t"])
})

test("stores worktrees separately", async () => {
  await revoked(server("a"), "Reads.", "/w")
  expect(await revoked(server("a"), "Reads.", "/v")).toEqual(["s_t"])
  expect(await revoked(server("a"), "Reads.", "/w")).toEqual([])
})

test("revokes everything if the file is invalid", async () => {
  await revoked(server("a"), "Reads.")
  await project.write("data/tools.json", '{"/w":{"s_t":7},"/v":[')
  expect(await revoked(server("a"), "Reads.")).toEqual(["s_t"])
})

test("revokes again after a failed attempt", async () => {
  const fingerprints = openToolFingerprints(project.path("data/tools.json"), "/w")
  const failing = fingerprints.check(server("a"), [tool("Reads.")], () =>
    Promise.reject(new Error("disk full")),
  )
  await expect(failing).rejects.toThrow("disk full")
  expect(await revoked(server("a"), "Reads.")).toEqual(["s_t"])
})
