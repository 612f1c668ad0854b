/**
 * Upstream MCP server `test` for `mcp-conformance-server.ts`. With this server, the suite tests the forms, sampling
 * requests and resources that Tackle forwards to its client.
 */
import { type ElicitRequestFormParams, McpServer, ResourceTemplate } from "@modelcontextprotocol/server"
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio"
import * as z from "zod"

const server = new McpServer(
  { name: "behind", version: "0" },
  { capabilities: { tools: {}, resources: { subscribe: true } } },
)
const words = (text: string) => ({ content: [{ type: "text" as const, text }] })
const choices = (...titles: string[]) => titles.map((title, index) => ({ const: `value${index + 1}`, title }))

server.registerTool(
  "sampling",
  { description: "Asks the client's model.", inputSchema: z.object({ prompt: z.string() }) },
  async ({ prompt }, { mcpReq }) => {
    const content = { type: "text" as const, text: prompt }
    const answer = await mcpReq.requestSampling({ messages: [{ role: "user", content }], maxTokens: 100 })
    return words(`LLM response: ${JSON.stringify(answer.content)}`)
  },
)

const forms: Record<string, ElicitRequestFormParams["requestedSchema"]["properties"]> = {
  elicitation_sep1034_defaults: {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  },
  elicitation_sep1330_enums: {
    untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
    titledSingle: { type: "string", oneOf: choices("First Option", "Second Option", "Third Option") },
    legacyEnum: {
      type: "string",
      enum: ["opt1", "opt2", "opt3"],
      enumNames: ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
    titledMulti: {
      type: "array",
      items: { anyOf: choices("First Choice", "Second Choice", "Third Choice") },
    },
  },
}

for (const [name, properties] of Object.entries(forms)) {
  server.registerTool(name, { description: "Shows a form." }, async ({ mcpReq }) => {
    const { action, content } = await mcpReq.elicitInput({
      message: "Please fill in the form.",
      requestedSchema: { type: "object", properties },
    })
    return words(`Elicitation completed: action=${action}, content=${JSON.stringify(content)}`)
  })
}

const picture =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

const texts = {
  "static-text": "This is the content of the static text resource.",
  "example-resource": "Embedded resource content for testing.",
  "watched-resource": "This never changes.",
}
for (const [name, text] of Object.entries(texts)) {
  server.registerResource(name, `test://${name}`, { mimeType: "text/plain" }, ({ href }) => ({
    contents: [{ uri: href, mimeType: "text/plain", text }],
  }))
}
server.registerResource(
  "static-binary",
  "test://static-binary",
  { mimeType: "image/png" },
  async ({ href }) => ({ contents: [{ uri: href, mimeType: "image/png", blob: picture }] }),
)
server.registerResource(
  "template",
  new ResourceTemplate("test://template/{id}/data", { list: undefined }),
  { mimeType: "application/json" },
  async ({ href }, { id }) => ({
    contents: [
      { uri: href, mimeType: "application/json", text: JSON.stringify({ id, data: `Data for ID: ${id}` }) },
    ],
  }),
)

server.server.setRequestHandler("resources/subscribe", () => ({}))
server.server.setRequestHandler("resources/unsubscribe", () => ({}))

await server.connect(new StdioServerTransport())
