/**
 * Runs the protocol's conformance suite against an MCP server that offers the tools the suite expects: `npm run
 * conformance:mcp-server`. Passes arguments to the suite, such as `--scenario ping`.
 */
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer, request } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as z from "zod"
import { createTackle } from "../src/engine/create-tackle.ts"
import { startHttp } from "../src/mcp/server/http.ts"
import type { Attachment } from "../src/schema/tool-state.ts"
import type { ToolContext } from "../src/tool/context.ts"
import { Tool } from "../src/tool/index.ts"
import type { Info } from "../src/tool/tool.ts"
import { startProcess } from "../src/util/process.ts"

const picture =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
const sound = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
const nothing = z.object({})

const attached = (mime: string, base64: string): Attachment => ({
  type: "file",
  mime,
  url: `data:${mime};base64,${base64}`,
})
const resource: Attachment = {
  ...attached("text/plain", Buffer.from("This is an embedded resource content.").toString("base64")),
  filename: "test://embedded-resource",
}

const key = randomUUID()

/** Time in ms after which a stream ends. Only one tool runs longer. */
const streamMs = 1000

const tools: Info[] = [
  answering("test_simple_text", "This is a simple text response for testing."),
  answering("test_image_content", "A picture.", [attached("image/png", picture)]),
  answering("test_audio_content", "A sound.", [attached("audio/wav", sound)]),
  answering("test_embedded_resource", "A resource.", [resource]),
  answering("test_multiple_content_types", "Multiple content types test:", [
    attached("image/png", picture),
    { ...resource, filename: "test://mixed-content-resource" },
  ]),
  Tool.define("test_error_handling", {
    description: "Fails.",
    parameters: nothing,
    async execute() {
      throw new Error("This tool intentionally returns an error for testing")
    },
  }),
  Tool.define("test_tool_with_progress", {
    description: "Reports its progress.",
    parameters: nothing,
    async execute(_args, ctx) {
      for (const done of [0, 50, 100]) {
        await ctx.metadata({ metadata: { progress: { done, total: 100 } } })
        // The engine merges reports that follow each other more quickly.
        await new Promise((next) => setTimeout(next, 150))
      }
      return { title: "progress", output: "Done." }
    },
  }),
  Tool.define("test_tool_with_logging", {
    description: "Logs its work.",
    parameters: nothing,
    async execute(_args, ctx) {
      await ctx.metadata({ title: "processing data" })
      return { title: "logging", output: "Done." }
    },
  }),
  Tool.define("test_reconnection", {
    description: "Runs longer than its stream stays open.",
    parameters: nothing,
    async execute() {
      await new Promise((next) => setTimeout(next, 2 * streamMs))
      return { title: "reconnection", output: "Done." }
    },
  }),
  Tool.define("json_schema_2020_12_tool", {
    description: "Has a schema with features of JSON Schema 2020-12.",
    parameters: z.looseObject({}),
    jsonSchema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: {
        address: {
          type: "object",
          properties: { street: { type: "string" }, city: { type: "string" } },
        },
      },
      properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" } },
      additionalProperties: false,
    },
    execute: async () => ({ title: "schema", output: "Done." }),
  }),
  Tool.define("test_elicitation", {
    description: "Asks the user.",
    parameters: z.object({ message: z.string() }),
    execute: async ({ message }, ctx) => ({ title: "asked", output: await askIn(ctx, message) }),
  }),
]

const commands = {
  test_simple_prompt: {
    template: "This is a simple prompt for testing.",
    description: "A prompt without arguments.",
  },
  test_prompt_with_arguments: {
    template: "Prompt with arguments: arg1='$1', arg2='$2'",
    argument_hint: "<arg1> <arg2>",
  },
  test_prompt_with_embedded_resource: {
    template: "Please process the embedded resource @test:$1",
    argument_hint: "<resourceUri>",
  },
  test_prompt_with_image: { template: "Please analyze the image @picture.png" },
}

async function askIn({ question }: ToolContext, message: string): Promise<string> {
  const answers = await question?.([{ question: message, header: "Answer" }])
  return `User response: ${answers ? JSON.stringify(answers) : "none"}`
}

function answering(id: string, output: string, attachments: Attachment[] = []): Info {
  return Tool.define(id, {
    description: `Answers: ${output}`,
    parameters: nothing,
    execute: async () => ({ title: id, output, attachments }),
  })
}

/** Starts a proxy that adds the key to each request, because the suite cannot send one. */
async function startProxy(target: string): Promise<{ url: string; close(): void }> {
  const proxy = createServer((incoming, response) => {
    const { method, headers } = incoming
    const authorization = `Bearer ${key}`
    const outgoing = request(target, { method, headers: { ...headers, authorization } }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    outgoing.on("error", () => response.destroy())
    response.on("close", () => outgoing.destroy())
    incoming.pipe(outgoing)
  })
  proxy.listen(0, "127.0.0.1")
  await once(proxy, "listening")
  const { port } = proxy.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}${new URL(target).pathname}`,
    close() {
      proxy.close()
      proxy.closeAllConnections()
    },
  }
}

const root = join(import.meta.dirname, "..")
const directory = mkdtempSync(join(tmpdir(), "tackle-conformance-"))
writeFileSync(join(directory, "picture.png"), Buffer.from(picture, "base64"))
const tackle = await createTackle({
  directory,
  dataDirectory: directory,
  tools,
  commands,
  mcp: {
    test: { type: "local", command: [process.execPath, join(root, "scripts/mcp-conformance-behind.ts")] },
  },
  permission: { "*": "allow" },
})
const server = await startHttp({
  connection: {
    tackle,
    trustClient: true,
    version: "0",
    describe: ({ permission }) => permission,
    streamMs,
    onProblem: (message, error) => console.error(`${message}: ${error}`),
  },
  port: 0,
  key,
})
const proxy = await startProxy(server.url)
try {
  const suite = await startProcess({
    argv: [
      join(root, "node_modules/.bin/conformance"),
      ...["server", "--url", proxy.url],
      ...["--expected-failures", join(root, "scripts/mcp-conformance-server-baseline.yml")],
      ...process.argv.slice(2),
    ],
    cwd: directory,
    env: process.env,
    onOutput: (bytes) => void process.stdout.write(bytes),
  })
  process.exitCode = (await suite.exited).code ?? 1
} finally {
  proxy.close()
  await server.close()
  await tackle.close()
  rmSync(directory, { recursive: true, force: true })
}
