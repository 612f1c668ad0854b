import { expect, test } from "vitest"
import { startEngine } from "../session/engine.ts"
import { resultsOf, run, tool, toolParts } from "../session/run.ts"

const environment = {
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  DEPLOY_TOKEN: "tok-0123456789",
  OPENAI_API_KEY: "sk-not-for-commands",
}

test("the value of a secret is nowhere in what a call shows or stores", async () => {
  const value = environment.DEPLOY_TOKEN
  const leaky = tool("leaky", async (_, ctx) => {
    await ctx.metadata({ title: `with ${value}`, found: value })
    throw new Error(`cannot log in with ${value}`)
  })
  await using engine = await startEngine(
    [
      {
        calls: [
          {
            name: "bash",
            arguments: { command: "echo before $DEPLOY_TOKEN; seq 3000; printenv DEPLOY_TOKEN" },
          },
          { name: "leaky", arguments: {} },
        ],
      },
      { text: "Done." },
    ],
    {
      permission: { "*": "allow" },
      environment,
      secrets: ["DEPLOY_TOKEN"],
      passEnvironment: ["DEPLOY_TOKEN"],
      tools: [leaky],
    },
  )
  const { session, events } = await run(engine)
  const [bash, failed] = await toolParts(session)
  expect(JSON.stringify(events)).not.toContain(value)
  expect(JSON.stringify(engine.server.requests.map(({ body }) => body))).not.toContain(value)
  expect((await resultsOf(session))[0]).toMatch(
    /before \[secret DEPLOY_TOKEN\]\n[\s\S]*\n\[secret DEPLOY_TOKEN\]\n/,
  )
  expect(failed?.state).toMatchObject({ status: "error", error: "cannot log in with [secret DEPLOY_TOKEN]" })
  const path = bash?.state.status === "completed" ? String(bash.state.metadata.outputPath) : ""
  const { readFile } = await import("node:fs/promises")
  const full = await readFile(path, "utf8")
  expect(full).not.toContain(value)
  expect(full).toMatch(/^before \[secret DEPLOY_TOKEN\]\n1\n[\s\S]*\n3000\n\[secret DEPLOY_TOKEN\]\n$/)
})

test.each([
  ["are kept from commands", [], "none"],
  ["are given where they are named, and hidden all the same", ["OPENAI_API_KEY"], "[secret OPENAI_API_KEY]"],
])("keys of providers %s", async (_, passEnvironment, seen) => {
  const command = { command: "printenv OPENAI_API_KEY || echo none" }
  await using engine = await startEngine(
    [{ calls: [{ name: "bash", arguments: command }] }, { text: "Done." }],
    {
      permission: { "*": "allow" },
      environment,
      passEnvironment,
    },
  )
  const { session } = await run(engine)
  expect((await resultsOf(session))[0]).toContain(`${seen}\n`)
})
