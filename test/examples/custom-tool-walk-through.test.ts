import { expect, test } from "vitest"
import type { Reply } from "../../src/testing/reply.ts"
import { createMachine } from "../cli/run-tackle.ts"

/** A tool as in guides for OpenCode's custom tools: it asks, reports progress, and answers. */
const source = `import { Tool } from "@opencode-ai/plugin"
import z from "zod"

const shout = async (text: string): Promise<string> => text.toUpperCase()

export default Tool.define("shout_text", async () => ({
  description: "Shouts a text.",
  parameters: z.object({ text: z.string().describe("What to shout"), twice: z.boolean().optional() }),
  async execute(params, ctx) {
    await ctx.ask({ permission: "shout_text", patterns: [params.text] })
    await ctx.metadata({ progress: 50 })
    return { title: "Shouted", output: await shout(params.text), metadata: { status: "success" } }
  },
}))
`

const filesOf = (name: string, action: string) => ({
  [`.opencode/tool/${name}.ts`]: source,
  ".opencode/config.toml": `[permission]\nshout_text = "${action}"  # by the id in the file\n`,
})
const once: Reply[] = [{ calls: [{ name: "shout_text", arguments: { text: "test" } }] }, { text: "Done." }]
const prompt = 'Use shout_text with "test"'

test("ignores a tool before trust, then asks as the TOML rules say, then runs it", async () => {
  const machine = await createMachine({ files: filesOf("shout_text", "ask"), script: [...once, ...once] })
  expect((await machine.run(["tool", "list"])).stdout).not.toContain("shout_text")
  await machine.trust()
  const listed = await machine.run(["tool", "list"])
  expect(listed).toMatchObject({ code: 0, stderr: "" })
  expect(listed.stdout).toMatch(/^shout_text +Shouts a text\./m)

  expect(await machine.run(["run", prompt])).toMatchObject({ stdout: "Done.\n" })
  const { requests } = machine.server
  const refusal = requests[1]?.body.messages.at(-1)
  expect(refusal).toMatchObject({ role: "tool", content: expect.stringContaining("shout_text") })
  expect(refusal?.content).not.toBe("TEST")

  const allowed = await machine.run(["run", "--format", "json", "--allow", "shout_text", prompt])
  expect(allowed.code).toBe(0)
  expect(requests[2]?.body.tools?.map((entry) => entry.function.name)).toContain("shout_text")
  expect(requests[3]?.body.messages.at(-1)).toMatchObject({ role: "tool", content: "TEST" })
  for (const told of ['"title":"Shouted"', '"status":"success"', '"progress":50'])
    expect(allowed.stdout).toContain(told)
})

test("asks once if the rule and the tool both ask", async () => {
  const machine = await createMachine({ files: filesOf("shout_text", "ask"), script: once })
  await machine.trust()
  const { stdout } = await machine.run(["run", "--format", "json", "--auto", prompt])
  expect(stdout.match(/"type":"permission\.asked"/g)).toHaveLength(1)
})

test("makes the tool unavailable if the file denies it", async () => {
  const machine = await createMachine({ files: filesOf("shout_text", "deny"), script: once })
  await machine.trust()
  await machine.run(["run", "--auto", prompt])
  const [first, second] = machine.server.requests
  expect(first?.body.tools?.map((entry) => entry.function.name)).not.toContain("shout_text")
  expect(second?.body.messages.at(-1)?.content).toMatch(/shout_text tool is unavailable/)
})

test("offers a tool under its file name, accepts its own name, and applies rules for both", async () => {
  const machine = await createMachine({ files: filesOf("loud", "ask"), script: [...once, ...once] })
  await machine.trust()
  await machine.run(["run", "--allow", "loud", prompt])
  const { requests } = machine.server
  expect(requests[0]?.body.tools?.map((entry) => entry.function.name)).toContain("loud")
  expect(requests[1]?.body.messages.at(-1)?.content).toContain("shout_text")
  expect(requests[1]?.body.messages.at(-1)?.content).not.toMatch(/^TEST$|no such tool/)
  await machine.run(["run", "--allow", "loud", "--allow", "shout_text", prompt])
  expect(requests[3]?.body.messages.at(-1)?.content).toBe("TEST")
})

test.each(["my_tool", "my_custom_tool"])(
  "runs a tool unasked if a rule for its defined id allows it, when called as %s",
  async (called) => {
    const files = {
      ".opencode/tool/my_tool.ts": source.replaceAll("shout_text", "my_custom_tool"),
      ".opencode/config.toml": '[permission]\nmy_custom_tool = "allow"\n',
    }
    const input = { text: "test" }
    const machine = await createMachine({
      files,
      script: [{ calls: [{ name: called, arguments: input }] }, { text: "Done." }],
    })
    await machine.trust()
    const { code, stdout } = await machine.run(["run", "--format", "json", prompt])
    expect(code).toBe(0)
    expect(stdout).not.toContain('"type":"permission.asked"')
    expect(machine.server.requests[1]?.body.messages.at(-1)?.content).toBe("TEST")
    expect(await machine.run(["tool", "call", called, JSON.stringify(input)])).toMatchObject({
      code: 0,
      stdout: "TEST\n",
    })
    const check = await machine.run(["permission", "check", called, JSON.stringify(input)])
    expect(check).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^allow\n.*allow my_custom_tool: \*/s),
    })
  },
)
