import * as z from "zod"
import { FormatterConfig } from "../formatter/config.ts"
import { LspConfig } from "../lsp/config.ts"
import { McpConfig } from "../mcp/client/config.ts"
import { ProviderConfig } from "../model/model.ts"
import { PermissionConfig } from "../permission/rules.ts"
import { SearchConfig } from "../tools/web/choose-search.ts"

const count = z.number().int().positive()

/**
 * Permission rules in the config. They are read from the text instead of through this schema, because their order
 * matters.
 */
const PermissionSection = z.lazy(() =>
  PermissionConfig.describe(
    "Permission rules: action by permission, or by permission and pattern. The last matching rule wins",
  ),
)

const ModelName = z.lazy(() => z.string().regex(/^[^/]+\/./, { error: "expected provider/model" }))

/** Returns the schemas of an agent's fields in a config file. */
export const agentFields = () => ({
  model: ModelName.optional().describe("Model for the agent, as provider/model"),
  prompt: z
    .string()
    .optional()
    .describe("System prompt that replaces the built-in one; {file:path} includes a file"),
  mode: z
    .enum(["primary", "subagent", "all"])
    .optional()
    .describe("A primary agent talks to the user; a subagent is started by another agent; all allows both"),
  temperature: z.number().min(0).max(2).optional().describe("Sampling temperature"),
  top_p: z.number().min(0).max(1).optional().describe("Nucleus sampling: share of the probability mass"),
  steps: count.optional().describe("Maximum model steps per prompt (default 100)"),
  permission: PermissionSection.optional(),
  tools: z
    .record(z.string(), z.boolean())
    .optional()
    .describe("Tools by id or pattern: false removes a tool; true does not override permission rules"),
  description: z
    .string()
    .optional()
    .describe("Purpose of the agent; the model uses this text to choose subagents"),
  hidden: z.boolean().optional().describe("Set to true to omit the agent from lists"),
  disable: z.boolean().optional().describe("Set to true to remove the agent"),
})

const AgentSection = z.lazy(() => z.strictObject(agentFields()))

const CommandSection = z.lazy(() =>
  z.strictObject({
    template: z
      .string()
      .min(1)
      .describe(
        "Prompt: $ARGUMENTS and $1, $2 … are the arguments, @path includes a file, !`…` runs a command",
      ),
    description: z.string().optional().describe("Purpose of the command"),
    agent: z.string().optional().describe("Agent that runs the command"),
    model: ModelName.optional().describe("Model for the command, as provider/model"),
    subtask: z.boolean().optional().describe("Set to true to run the command in a subagent"),
    argument_hint: z.string().optional().describe("Arguments for the command, shown to users"),
  }),
)

const TruncateSection = z.lazy(() =>
  z.strictObject({
    maxLines: count.optional().describe("Maximum lines of tool output sent to the model (default 2000)"),
    maxBytes: count.optional().describe("Maximum bytes of tool output sent to the model (default 51200)"),
    spillBytes: count
      .optional()
      .describe("Maximum size of the file with the full output, in bytes (default 1 GB)"),
    retentionDays: count.optional().describe("Days to keep full outputs (default: retention.days)"),
  }),
)

const SandboxSetting = z.lazy(() => {
  const mode = z.enum(["auto", "require", "off"])
  return z.union([mode, z.strictObject({ mode: mode.optional(), allow: z.literal("auto").optional() })])
})

const RetentionSection = z.lazy(() =>
  z.strictObject({
    days: count.optional().describe("Days to keep files after their last use (default 7)"),
    megabytes: count
      .optional()
      .describe("Maximum size of full outputs, and of copies of changed files, in megabytes (default 512)"),
  }),
)

const TenantSection = z.lazy(() =>
  z.strictObject({
    sessions: count.optional().describe("Maximum number of sessions that run at once; further inputs wait"),
    tokensPerDay: count
      .optional()
      .describe("Maximum number of tokens per day (UTC), excluding cached tokens"),
    costPerDay: z.number().positive().optional().describe("Maximum cost per day (UTC) in US dollars"),
    queued: count
      .optional()
      .describe("Maximum number of waiting inputs, counted across all sessions; further inputs are rejected"),
  }),
)

const SubagentSection = z.lazy(() =>
  z.strictObject({
    depth: z
      .number()
      .int()
      .nonnegative()
      .optional()
      .describe(
        "Maximum depth of subagents: 0 allows none, 1 prevents subagents from starting others (default 1)",
      ),
    timeoutSeconds: z
      .number()
      .positive()
      .optional()
      .describe("Time limit in seconds for a task (default 1800)"),
    steps: count.optional().describe("Maximum model steps per task (default: the limit of its agent)"),
    tokens: count.optional().describe("Maximum tokens per task, excluding cached tokens (default: no limit)"),
  }),
)

const ToolSearchSection = z.lazy(() =>
  z.strictObject({
    maxBytes: z
      .number()
      .int()
      .nonnegative()
      .optional()
      .describe(
        "Maximum total size of tool definitions in bytes; if they are larger, tools are deferred (default 65536)",
      ),
  }),
)

const ExperimentalSection = z.lazy(() =>
  z.strictObject({
    lsp_tool: z.boolean().optional().describe("Whether to offer the lsp tool"),
    batch_tool: z.boolean().optional().describe("Whether to offer the batch tool"),
    plan_mode: z.boolean().optional().describe("Whether to offer plan_enter and plan_exit"),
  }),
)

const RetrySection = z.lazy(() =>
  z.strictObject({
    maxAttempts: count.optional().describe("Maximum attempts per request to a provider (default 5)"),
    maxDelaySeconds: z
      .number()
      .positive()
      .optional()
      .describe("Longest delay in seconds that a provider may request before the next attempt (default 120)"),
  }),
)

const TimeoutSection = z.lazy(() =>
  z.strictObject({
    firstByteSeconds: z
      .number()
      .positive()
      .optional()
      .describe("Time limit in seconds for the first byte of a response (default 300)"),
    idleSeconds: z
      .number()
      .positive()
      .optional()
      .describe("Idle timeout within a response in seconds (default 300)"),
  }),
)

const PluginEntry = z.lazy(() =>
  z.union([z.string().min(1), z.tuple([z.string().min(1), z.record(z.string(), z.unknown())])]),
)

/**
 * The sections of a config file. Every level is strict, except the options of providers, models, plugins and language
 * servers. Each section is a function, because creating the whole schema takes longer than checking a typical file.
 */
const sections = {
  $schema: () => z.string().describe("URL of this schema, for editors"),
  model: () => ModelName.describe("Model to use, as provider/model"),
  small_model: () => ModelName.describe("Accepted for compatibility with OpenCode; has no effect yet"),
  default_agent: () => z.string().describe("Agent to use if none is specified (default build)"),
  provider: () => z.record(z.string(), ProviderConfig).describe("Model providers by id"),
  permission: () => PermissionSection,
  agent: () =>
    z.record(z.string(), AgentSection).describe("Agents by name: changes to built-in agents, and new agents"),
  command: () =>
    z.record(z.string(), CommandSection).describe("Commands by name: prompts that users start with /name"),
  tools: () => z.record(z.string(), z.boolean()).describe("Tools by id: false removes a tool"),
  tool_search: () =>
    z
      .union([z.literal(false), ToolSearchSection])
      .describe(
        "When to defer the tools of MCP servers, plugins and files. The model finds deferred tools with tool_search. Set to false to defer no tools",
      ),
  override: () => z.array(z.string()).describe("Ids of built-in tools that custom tools may replace"),
  plugin: () =>
    z
      .array(PluginEntry)
      .describe(
        "Plugins: names of installed packages, or paths; with options as [name, { … }]. The lists of all config files are joined",
      ),
  instructions: () =>
    z.array(z.string()).describe("Files, or patterns of files, whose text is added to the system prompt"),
  truncate: () => TruncateSection.describe("Limits for tool output"),
  retention: () => RetentionSection.describe("Retention of the files that belong to sessions"),
  tenants: () =>
    z
      .record(
        z.string().regex(/^([\w.-]{1,64}|\*)$/, 'expected 1 to 64 letters, digits, ".", "_" or "-", or *'),
        TenantSection,
      )
      .describe(
        "Limits by tenant, for sessions that belong to a tenant; * applies to all other tenants. Ignored in a project's config",
      ),
  subagent: () => SubagentSection.describe("Limits for the task tool"),
  experimental: () => ExperimentalSection.describe("Features that may change"),
  status_line: () =>
    z
      .tuple([z.string().min(1)], z.string())
      .describe(
        "Command, as a list of words, that prints the status line of the interactive terminal. Receives JSON on stdin. Only the user's own config can set it",
      ),
  secrets: () =>
    z
      .array(z.string().min(1))
      .describe(
        "Environment variables whose values are masked in tool output and in everything that Tackle shows or stores",
      ),
  pass_environment: () =>
    z
      .array(z.string().min(1))
      .describe("Environment variables to pass to commands and custom tools even if they contain keys"),
  shell: () =>
    z.string().describe("Shell that runs commands (default: /bin/bash if it exists, otherwise /bin/sh)"),
  sandbox: () =>
    SandboxSetting.describe(
      'Sandbox for commands. "auto" (default): use a sandbox if one is available. "require": refuse to run commands without one. "off": never use one. In an object, `mode` accepts these values, and `allow: "auto"` runs commands in the sandbox without permission requests',
    ),
  search: () => SearchConfig.describe("Search service for websearch and codesearch"),
  lsp: () =>
    LspConfig.describe(
      "Language servers by id, for experimental.lsp_tool: changes to known servers, and new servers. Set to false to disable all language servers",
    ),
  formatter: () =>
    FormatterConfig.describe(
      "Formatters that run after a tool changes a file: an object with formatters by name, true for all known formatters (some run only if the project has a settings file for them), or false for none (the default)",
    ),
  mcp: () => McpConfig.describe("MCP servers by id: their tools are offered as <id>_<tool>"),
  retry: () => RetrySection.describe("Retries after provider errors"),
  timeout: () => TimeoutSection.describe("Timeouts for requests to providers"),
}

/** Top-level keys of a config file. */
export const sectionNames: readonly string[] = Object.keys(sections)

/** Keys that only the user's own config can set, because a project must not choose the program that such a key runs. */
export const userSections: readonly string[] = ["status_line"]

/** Returns the schema of one section of a config file. */
export function sectionSchema(name: keyof typeof sections): z.ZodType {
  return sections[name]()
}

/** Returns the schema for a config file, limited to `keys`. */
export function configSchema(keys: readonly string[] = sectionNames): z.ZodType {
  const shape = Object.entries(sections).flatMap(([name, make]) =>
    keys.includes(name) ? [[name, make().optional()] as const] : [],
  )
  return z.strictObject(Object.fromEntries(shape))
}

type Sections = { [K in keyof typeof sections]?: z.infer<ReturnType<(typeof sections)[K]>> | undefined }

/** The merged config as plain values, without permission rules. See `LoadedConfig`. */
export type Config = Omit<Sections, "$schema" | "permission" | "agent"> & {
  agent?: Record<string, Omit<z.infer<typeof AgentSection>, "permission"> & { problem?: string }>
}

let jsonSchema: Record<string, unknown> | undefined

/** Returns the JSON Schema (draft 7) for a config file, for editors. The result must not be changed. */
export function configJsonSchema(): Readonly<Record<string, unknown>> {
  // Kept, because it takes 12 ms to create and each problem in a file needs it.
  jsonSchema ??= z.toJSONSchema(configSchema(), { target: "draft-7", io: "input" })
  return jsonSchema
}
