import { afterAll, describe, expect, test } from "vitest"
import type { PermissionConfig } from "../../src/permission/rules.ts"
import type { PermissionRequest } from "../../src/schema/permission.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"
import { startEngine } from "../session/engine.ts"
import { resultsOf, run } from "../session/run.ts"

const projects: TemporaryProject[] = []
afterAll(async () => {
  for (const project of projects) await project.remove()
})

const source = (name: string, body = "") => `
import * as z from ${JSON.stringify(import.meta.resolve("zod"))}
const init = async () => ({
  description: "Shouts a text.",
  parameters: z.object({ text: z.string() }),
  async execute({ text }, ctx) {
    ${body}
    return { title: "Shouted", output: text.toUpperCase() }
  },
})
export default { id: ${JSON.stringify(name)}, init }`

interface Setup {
  /** The name that the model calls. */
  called?: string
  /** Tool files by name. Default: `loud`, which defines `shout`. */
  files?: Record<string, string>
  permission?: PermissionConfig
  disabledTools?: string[]
}

/** Calls a tool with the text "hi". Returns the requests, the offered tools, and what the model read. */
async function call({ called = "loud", files = { loud: source("shout") }, ...options }: Setup = {}) {
  const project = await temporaryProject(
    Object.fromEntries(Object.entries(files).map(([name, text]) => [`tool/${name}.mjs`, text])),
  )
  projects.push(project)
  await using engine = await startEngine(
    [{ calls: [{ name: called, arguments: { text: "hi" } }] }, { text: "Done." }],
    { ...options, toolFiles: Object.keys(files).map((name) => project.path(`tool/${name}.mjs`)) },
  )
  const asked: Pick<PermissionRequest, "permission" | "patterns">[] = []
  engine.tackle.on("permission.asked", ({ permission, patterns, reply }) => {
    asked.push({ permission, patterns })
    void reply("once")
  })
  const { session } = await run(engine)
  const offered = engine.server.requests[0]?.body.tools?.map((entry) => entry.function.name) ?? []
  return { asked, offered, results: await resultsOf(session) }
}

const question = { permission: "loud", patterns: ['{"text":"hi"}'] }

describe("a tool file that defines another id", () => {
  test.each(["loud", "shout"])("runs if it is called as %s", async (called) => {
    const { asked, offered, results } = await call({ called })
    expect(results).toEqual(["HI"])
    expect(asked).toEqual([question])
    expect(offered).toContain("loud")
    expect(offered).not.toContain("shout")
  })

  test.each<PermissionConfig>([
    { shout: "allow" },
    { loud: "allow" },
    { "*": "ask", shout: "allow" },
    { "*": "deny", shout: "allow" },
    { shout: { "*": "ask", '{"text":"h*': "allow" } },
    { "sho*": "allow" },
  ])("runs without a request under %j", async (permission) => {
    expect(await call({ permission })).toMatchObject({ asked: [], results: ["HI"] })
  })

  test.each<[PermissionConfig, string]>([
    [{ shout: "ask", loud: "allow" }, "shout"],
    [{ loud: "ask", shout: "allow" }, "loud"],
    [{ loud: "ask", shout: "ask" }, "loud"],
    [{ loud: "allow", shout: { "*": "allow", '{"text":"h*': "ask" } }, "shout"],
    [{ "*": "allow", shout: "ask" }, "shout"],
  ])("asks once under %j, for %s", async (permission, name) => {
    const files = { loud: source("shout", 'await ctx.ask({ permission: "shout", patterns: [text] })') }
    const asked = [{ ...question, permission: name }]
    expect(await call({ files, permission })).toMatchObject({ asked, results: ["HI"] })
  })

  test.each<PermissionConfig>([
    { shout: "deny", loud: "allow" },
    { loud: "deny", shout: "allow" },
    { "*": "allow", shout: "deny" },
  ])("is not offered under %j", async (permission) => {
    for (const called of ["loud", "shout"]) {
      const { offered, asked, results } = await call({ called, permission })
      expect({ asked, ran: results.includes("HI"), loud: offered.includes("loud") }).toEqual({
        asked: [],
        ran: false,
        loud: false,
      })
      expect(results[0]).toMatch(/is unavailable: the permission rules deny it/)
    }
  })

  test("is refused for the arguments that a rule for either name denies", async () => {
    const permission: PermissionConfig = { loud: "allow", shout: { "*": "allow", '{"text":"h*': "deny" } }
    const { asked, results } = await call({ permission })
    expect(asked).toEqual([])
    expect(results[0]).toMatch(/^Error: Not allowed: shout/)
  })

  test.each(["loud", "shout"])("is not offered if the configuration disables %s", async (name) => {
    const { results } = await call({ called: name, disabledTools: [name], permission: { "*": "allow" } })
    expect(results[0]).toMatch(/is unavailable: it is disabled by the "tools" setting/)
  })
})

describe("the request of a tool under its own name", () => {
  const files = { loud: source("shout", 'await ctx.ask({ permission: "shout", patterns: [text] })') }

  test("is not asked after a rule allowed the call", async () => {
    expect(await call({ files, permission: { shout: "allow" } })).toMatchObject({
      asked: [],
      results: ["HI"],
    })
  })

  test("is asked if a rule for its pattern asks and the call was not asked about", async () => {
    const permission: PermissionConfig = { shout: { "*": "allow", "h?": "ask" } }
    const { asked, results } = await call({ files, permission })
    expect(asked).toEqual([{ permission: "shout", patterns: ["hi"] }])
    expect(results).toEqual(["HI"])
  })

  test("is refused if a rule denies its pattern", async () => {
    const permission: PermissionConfig = { loud: "allow", shout: { "*": "allow", "h?": "deny" } }
    const { asked, results } = await call({ files, permission })
    expect(asked).toEqual([])
    expect(results[0]).toMatch(/^Error: Not allowed: shout "hi"/)
  })
})

describe("a defined id that is not the tool's alone", () => {
  test.each(["glob", "read", "webfetch", "external_directory", "todo"])(
    "does not loosen the rules of a tool that calls itself %s",
    async (name) => {
      const { asked } = await call({
        files: { loud: source(name) },
        permission: { [name]: "allow" },
      })
      expect(asked).toEqual([question])
    },
  )

  test("still applies a deny for it", async () => {
    const permission: PermissionConfig = { loud: "allow", webfetch: "deny" }
    const { results } = await call({ files: { loud: source("webfetch") }, permission })
    expect(results[0]).toMatch(/is unavailable/)
  })

  test("asks for the permission of another tool", async () => {
    const body =
      'await ctx.ask({ permission: "webfetch", patterns: ["https://x.test/"], alias: { name: "glob" } })'
    const { asked } = await call({ files: { loud: source("webfetch", body) }, permission: { loud: "allow" } })
    expect(asked).toEqual([{ permission: "webfetch", patterns: ["https://x.test/"] }])
  })

  test("does not select either of two tools that define it", async () => {
    const files = { loud: source("shout"), louder: source("shout") }
    const { asked, results } = await call({ called: "shout", files, permission: { shout: "allow" } })
    expect(asked).toEqual([])
    expect(results[0]).toMatch(/does not exist/)
    expect((await call({ files, permission: { shout: "allow" } })).asked).toEqual([question])
  })
})
