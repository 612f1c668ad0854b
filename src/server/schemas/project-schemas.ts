import * as z from "zod"
import { ToolStateCompleted, ToolStateError, ToolStateRunning } from "../../schema/tool-state.ts"
import type { JsonSchema } from "../../util/json-schema.ts"
import { name } from "./named.ts"

const ToolListing = z.object({
  id: z.string(),
  alias: z.string().optional(),
  description: z.string(),
  parameters: z.custom<JsonSchema>().meta({ type: "object" }).describe("JSON Schema for the arguments"),
  source: z.string(),
  offered: z.boolean(),
  reason: z.string().optional().describe("Reason why the tool is not offered"),
})

const AgentView = z.object({
  name: z.string(),
  description: z.string(),
  mode: z.enum(["primary", "subagent", "all"]),
  model: z.string().optional().describe("As `provider/model`"),
  steps: z.number().describe("Maximum number of model steps per prompt"),
})

const CommandView = z.object({
  name: z.string(),
  description: z.string().optional(),
  origin: z.enum(["skill", "mcp"]).optional(),
})

const ModelView = z.object({
  id: z.string().describe("As `provider/model`"),
  name: z.string(),
  limit: z.object({ context: z.number().optional(), output: z.number().optional() }).describe("In tokens"),
  cost: z
    .object({
      input: z.number(),
      output: z.number(),
      cacheRead: z.number().optional(),
      cacheWrite: z.number().optional(),
    })
    .optional()
    .describe("US dollars per million tokens"),
  attachment: z.boolean().describe("True if the model accepts images"),
  toolCall: z.boolean().describe("False if the model's server does not accept tools"),
})

const McpServer = z.object({
  id: z.string(),
  status: z.enum(["connected", "failed"]),
  tools: z.array(z.object({ id: z.string(), name: z.string(), description: z.string() })),
  problem: z.string().optional(),
})

const McpPrompt = z.object({
  server: z.string(),
  name: z.string(),
  title: z.string().optional(),
  description: z.string().optional(),
  arguments: z.array(
    z.object({ name: z.string(), description: z.string().optional(), required: z.boolean() }),
  ),
})

const CallResult = z.object({
  callID: z.string(),
  state: z.discriminatedUnion("status", [ToolStateCompleted, ToolStateError]),
})

const CallEvent = z.discriminatedUnion("type", [
  z.object({ type: z.literal("progress"), state: ToolStateRunning }),
  CallResult.extend({ type: z.literal("result") }),
])

const Project = z.object({
  directory: z.string(),
  worktree: z.string(),
  branch: z.string().optional().describe("The checked-out git branch, if any"),
  sandbox: z
    .discriminatedUnion("works", [
      z.object({
        works: z.literal(true),
        kind: z.enum(["bubblewrap", "seatbelt"]),
        limitation: z.string().optional(),
      }),
      z.object({ works: z.literal(false), reason: z.string() }),
    ])
    .describe("Whether the sandbox for commands works"),
})

const Output = z.object({
  title: z.string(),
  output: z.string().describe("The text that a model would receive"),
  metadata: z.record(z.string(), z.unknown()),
})

/** Schemas for a server and its projects. */
export const projectResponses = {
  error: name(
    "Error",
    z.object({ error: z.object({ code: z.string(), message: z.string(), details: z.unknown().optional() }) }),
  ),
  health: name("Health", z.object({ healthy: z.literal(true), version: z.string() })),
  tool: name("Tool", ToolListing),
  agent: name("Agent", AgentView),
  command: name("Command", CommandView),
  model: name("Model", ModelView),
  mcpServer: name("McpServer", McpServer),
  mcpPrompt: name("McpPrompt", McpPrompt),
  call: name("CallResult", CallResult),
  callEvent: name("CallEvent", CallEvent),
  project: name("Project", Project),
  output: name("Output", Output),
}

/** The body of a tool call. */
export const ToolCallBody = z
  .strictObject({
    directory: z.string().openapi({ description: "Absolute path of the project's directory" }),
    arguments: z.record(z.string(), z.unknown()),
    agent: z.string().optional().openapi({ description: "Agent whose rules apply" }),
    messageID: z
      .string()
      .regex(/^msg_[0-9A-Za-z]{1,60}$/, 'expected "msg_" and up to 60 letters and digits')
      .optional()
      .openapi({ description: "Identifies the call in permission requests, as `tool.messageID`" }),
    stream: z
      .boolean()
      .optional()
      .openapi({ description: "Whether to send the call's progress as an event stream" }),
  })
  .openapi("ToolCall")
