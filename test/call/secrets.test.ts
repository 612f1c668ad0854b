import { readdir, readFile } from "node:fs/promises"
import { expect, test } from "vitest"
import { openSqliteStore } from "../../src/store/sqlite.ts"
import { startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { errorMessage } from "../../src/util/errors.ts"
import { scriptedServer } from "../mcp/client/servers.ts"
import { startEngine } from "../session/engine.ts"
import { resultsOf, run, tool, toolParts } from "../session/run.ts"

const environment = {
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  DEPLOY_TOKEN: "tok-0123456789",
  OPENAI_API_KEY: "sk-not-for-commands",
}

test("hides a secret in everything that a call shows or stores", async () => {
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
  const full = await readFile(path, "utf8")
  expect(full).not.toContain(value)
  expect(full).toMatch(/^before \[secret DEPLOY_TOKEN\]\n1\n[\s\S]*\n3000\n\[secret DEPLOY_TOKEN\]\n$/)
})

test.each([
  ["are kept from commands", [], "none"],
  ["are given where they are named, and hidden all the same", ["OPENAI_API_KEY"], "[secret OPENAI_API_KEY]"],
])("hides provider keys %s", async (_, passEnvironment, seen) => {
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

test("hides secrets of servers and providers in the store and in events", async () => {
  const secrets = {
    header: "hdr-0123456789",
    variable: "var-0123456789",
    client: "cli-0123456789",
    provider: "prv-0123456789",
  }
  const faults: unknown[] = []
  const project = await temporaryProject({})
  const { settings } = scriptedServer(project.path("log"), {
    environment: { TICKETS_TOKEN: secrets.variable },
  })
  const remote = {
    type: "remote" as const,
    url: "http://127.0.0.1:1/mcp",
    headers: { "X-Api-Key": secrets.header },
    oauth: { clientId: "me", clientSecret: secrets.client },
  }
  const store = await openSqliteStore(project.path("sessions.db"))
  const said = `echo ${secrets.header} ${secrets.client} ${secrets.provider}`
  const server = await startModelServer({
    script: [
      { text: `I say ${secrets.client}`, calls: [{ name: "bash", arguments: { command: said } }] },
      { calls: [{ name: "scripted_env", arguments: {} }] },
      { text: "Done." },
    ],
  })
  const options = { baseURL: server.url, apiKey: "k", headers: { "X-Team-Auth": secrets.provider } }
  {
    await using engine = await startEngine([], {
      permission: { "*": "allow" },
      mcp: { scripted: settings, remote },
      providers: { test: { options, models: { m: {} } } },
      store,
      onProblem: (message, error) => faults.push(message, errorMessage(error)),
    })
    const { session, events } = await run(engine, { text: `What is ${secrets.variable}?` })
    const [echoed, environment] = await resultsOf(session)
    expect(echoed).toContain(
      "[secret mcp.remote.headers.X-Api-Key] [secret mcp.remote.oauth.clientSecret] [secret provider.test.options.headers.X-Team-Auth]",
    )
    expect(environment).toContain('"TICKETS_TOKEN":"[secret mcp.scripted.environment.TICKETS_TOKEN]"')
    const told = JSON.stringify([events, faults])
    for (const value of Object.values(secrets)) expect(told).not.toContain(value)
  }
  // The server receives the real value.
  expect(server.requests[0]?.headers["x-team-auth"]).toBe(secrets.provider)
  await server.close()
  for (const name of await readdir(project.directory)) {
    if (!name.startsWith("sessions.db")) continue
    const bytes = await readFile(project.path(name), "latin1")
    for (const value of Object.values(secrets)) expect(bytes).not.toContain(value)
  }
  await store.close()
  await project.remove()
})
