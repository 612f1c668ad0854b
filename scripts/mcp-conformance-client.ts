/**
 * Client for the protocol's conformance suite. Connects to the URL of a test server, signs in if needed, lists the
 * tools and calls each of them. `npm run conformance:mcp` runs the suite.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createTackle } from "../src/engine/create-tackle.ts"
import type { OAuthSettings, RemoteServer } from "../src/mcp/client/config.ts"
import { signIn } from "../src/mcp/client/oauth/sign-in.ts"
import { openTokenStore } from "../src/mcp/client/oauth/token-store.ts"
import { isRecord, parseJson } from "../src/util/json.ts"

/** Maximum number of sign-ins. */
const maxSignIns = 2

const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_CONTEXT: context } = process.env
const server: RemoteServer = { type: "remote", url: process.argv.at(-1) ?? "", oauth: settingsOf() }
const directory = mkdtempSync(join(tmpdir(), "tackle-conformance-"))
const tokens = openTokenStore(join(directory, "mcp-auth.json"))
const tackle = await createTackle({
  directory,
  dataDirectory: directory,
  mcp: { suite: server },
  permission: { "*": "allow" },
})
// With empty answers, each form field has its default value.
tackle.on("question.asked", ({ questions, reply }) => void reply(questions.map(() => [])))
try {
  await signingIn(callTools)
} finally {
  await tackle.close()
  rmSync(directory, { recursive: true, force: true })
}

async function signingIn(work: () => Promise<void>): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await work()
    } catch (error) {
      if (!String(error).includes("tackle mcp auth") || attempt === maxSignIns) throw error
      await signIn({ server, tokens, open: (url) => void fetch(url), signal: AbortSignal.timeout(60_000) })
    }
  }
}

async function callTools(): Promise<void> {
  const [status] = await tackle.mcpServers()
  if (status?.status !== "connected") throw new Error(status?.problem ?? "the server is missing")
  const tools = (await tackle.tools()).filter(({ source }) => source === "mcp suite")
  for (const { id, parameters } of tools) {
    const { state } = await tackle.callTool({ tool: id, input: JSON.stringify(sampleOf(parameters)) })
    if (state.status === "error") throw new Error(`${id}: ${state.error}`)
  }
}

/** Returns a value for every parameter. The suite uses numbers and strings. */
function sampleOf({ properties }: Record<string, unknown>): Record<string, unknown> {
  const entries = isRecord(properties) ? Object.entries(properties) : []
  return Object.fromEntries(
    entries.map(([name, schema]) => [name, isRecord(schema) && schema.type === "number" ? 3 : "text"]),
  )
}

/** Returns the configuration for the scenario. */
function settingsOf(): OAuthSettings {
  const parsed = parseJson(context ?? "{}")
  const given = parsed.ok && isRecord(parsed.value) ? parsed.value : {}
  const { client_id: id, client_secret: secret, private_key_pem: key } = given
  return {
    ...(typeof id === "string" ? { clientId: id } : {}),
    ...(typeof secret === "string" ? { clientSecret: secret } : {}),
    ...(typeof key === "string" ? { privateKey: key } : {}),
    ...(scenario?.startsWith("auth/client-credentials-") ? { grant: "client_credentials" } : {}),
    ...(scenario === "auth/basic-cimd"
      ? { clientMetadataUrl: "https://conformance-test.local/client-metadata.json" }
      : {}),
  }
}
