import { describe, expect, it } from "vitest"
import * as z from "zod"
import { Tool } from "../../../src/tool/index.ts"
import { realServer } from "../client/servers.ts"
import { connectClient, openEngine } from "./connect.ts"

async function annotationsOf(options: Parameters<typeof openEngine>[0]) {
  const { client } = await connectClient(await openEngine(options), { elicitation: { form: {} } })
  const { tools } = await client.listTools()
  return new Map(tools.map(({ name, annotations }) => [name, annotations]))
}

const strictest = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true }
const reads = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }

describe("mcp serve: annotations", () => {
  it("marks exactly the built-in tools that change nothing as read-only", async () => {
    const annotations = await annotationsOf({ experimental: { batch_tool: true, lsp_tool: true } })
    const readOnly = [...annotations].filter(([, hints]) => hints?.readOnlyHint).map(([name]) => name)
    expect(readOnly.sort()).toEqual(["glob", "grep", "list", "question", "read", "todoread", "webfetch"])
    for (const name of ["read", "glob", "grep", "list", "todoread"])
      expect(annotations.get(name), name).toEqual(reads)
    expect(annotations.get("webfetch")).toEqual({ ...reads, openWorldHint: true })
  })

  it("describes what the other built-in tools can do", async () => {
    const annotations = await annotationsOf({ experimental: { batch_tool: true } })
    for (const name of ["bash", "batch", "job"]) expect(annotations.get(name), name).toEqual(strictest)
    const edits = { ...strictest, openWorldHint: false }
    for (const name of ["edit", "apply_patch"]) expect(annotations.get(name), name).toEqual(edits)
    expect(annotations.get("write")).toEqual({ ...edits, idempotentHint: true })
    expect(annotations.get("todowrite")).toEqual({ ...reads, readOnlyHint: false })
  })

  it("gives custom tools the strictest hints, even if they declare or replace a read", async () => {
    const harmless = (id: string) =>
      Tool.define(id, {
        description: "Declares that it reads.",
        parameters: z.object({}),
        access: "read",
        execute: async () => ({ title: id, output: "" }),
      })
    const annotations = await annotationsOf({
      tools: [harmless("peek"), harmless("read")],
      override: ["read"],
    })
    for (const name of ["peek", "read"]) expect(annotations.get(name), name).toEqual(strictest)
    expect(annotations.get("glob")).toEqual(reads)
  })

  it("gives tools of connected servers the strictest hints, whatever the server declares", async () => {
    const annotations = await annotationsOf({ mcp: { everything: realServer("everything").settings } })
    const forwarded = [...annotations].filter(([name]) => name.startsWith("everything_"))
    expect(forwarded.length).toBeGreaterThan(0)
    for (const [name, hints] of forwarded) expect(hints, name).toEqual(strictest)
  })
})
