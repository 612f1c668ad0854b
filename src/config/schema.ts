import * as z from "zod"
import { FormatterConfig } from "../formatter/config.ts"
import { LspConfig } from "../lsp/config.ts"
import { McpConfig } from "../mcp/client/config.ts"
import { ProviderConfig } from "../model/model.ts"
import { PermissionConfig } from "../permission/rules.ts"
import { SearchConfig } from "../tools/web/choose-search.ts"

const count = z.number().int().positive()

/** Permission rules as written. Order counts, so that they are read from the text and not through this schema. */
const PermissionSection = z.lazy(() =>
  PermissionConfig.describe(
    "What may be done without asking: permission to action, or to pattern to action. The last match wins",
  ),
)

const ModelName = z.lazy(() => z.string().regex(/^[^/]+\/./, { error: "expected provider/model" }))

const AgentSection = z.lazy(() =>
  z.strictObject({
    model: ModelName.optional().describe("The agent's model, as provider/model"),
    prompt: z
      .string()
      .optional()
      .describe("System prompt instead of the built-in one; {file:path} reads a file"),
    mode: z
      .enum(["primary", "subagent", "all"])
      .optional()
      .describe("primary talks with the person, subagent is started by another agent"),
    temperature: z.number().min(0).max(2).optional().describe("Sampling temperature"),
    steps: count.optional().describe("Steps of the model in one prompt (default 100)"),
    permission: PermissionSection.optional(),
    tools: z
      .record(z.string(), z.boolean())
      .optional()
      .describe(
        "Tools by id or pattern: false takes one from the agent. True allows nothing that rules do not",
      ),
    description: z.string().optional().describe("What the agent is for: the model chooses subagents by it"),
    hidden: z.boolean().optional().describe("True leaves the agent out of lists for people"),
    disable: z.boolean().optional().describe("True takes the agent away"),
  }),
)

const CommandSection = z.lazy(() =>
  z.strictObject({
    template: z
      .string()
      .min(1)
      .describe(
        "The prompt: $ARGUMENTS and $1, $2 … are what follows the name, @path a file, !`…` a command",
      ),
    description: z.string().optional().describe("What the command is for"),
    agent: z.string().optional().describe("The agent that works on it"),
    model: ModelName.optional().describe("The model for it, as provider/model"),
    subtask: z.boolean().optional().describe("True hands it to the agent as a subagent"),
    argument_hint: z.string().optional().describe("What follows the name, for people"),
  }),
)

const TruncateSection = z.lazy(() =>
  z.strictObject({
    maxLines: count.optional().describe("Lines of a tool's output that the model gets (default 2000)"),
    maxBytes: count.optional().describe("Bytes of a tool's output that the model gets (default 51200)"),
    spillBytes: count.optional().describe("Bytes at which the file with the full output ends (default 1 GB)"),
    retentionDays: count.optional().describe("Days that full outputs are kept (default: retention.days)"),
  }),
)

const RetentionSection = z.lazy(() =>
  z.strictObject({
    days: count.optional().describe("Days after their last use that files are kept (default 7)"),
    megabytes: count
      .optional()
      .describe("Megabytes of full outputs, and of copies of changed files, that are kept (default 512)"),
  }),
)

const SubagentSection = z.lazy(() =>
  z.strictObject({
    depth: z
      .number()
      .int()
      .nonnegative()
      .optional()
      .describe("Levels of subagents; 1: a subagent starts none itself, 0: there are none (default 1)"),
    timeoutSeconds: z.number().positive().optional().describe("Longest time for one task (default 1800)"),
    steps: count.optional().describe("Steps of the model in one task (default: those of its agent)"),
    tokens: count
      .optional()
      .describe("Tokens that one task may use, without cached ones (default: no limit)"),
  }),
)

const ToolSearchSection = z.lazy(() =>
  z.strictObject({
    maxBytes: z
      .number()
      .int()
      .nonnegative()
      .optional()
      .describe("Bytes of definitions up to which all tools are offered at once (default 65536)"),
  }),
)

const ExperimentalSection = z.lazy(() =>
  z.strictObject({
    lsp_tool: z.boolean().optional().describe("Offers the lsp tool"),
    batch_tool: z.boolean().optional().describe("Offers the batch tool"),
    plan_mode: z.boolean().optional().describe("Offers plan_enter and plan_exit"),
  }),
)

const RetrySection = z.lazy(() =>
  z.strictObject({
    maxAttempts: count.optional().describe("Attempts at one request to a provider"),
    maxDelaySeconds: z.number().positive().optional().describe("Longest wait between two attempts"),
  }),
)

const TimeoutSection = z.lazy(() =>
  z.strictObject({
    firstByteSeconds: z.number().positive().optional().describe("Longest wait for an answer to begin"),
    idleSeconds: z.number().positive().optional().describe("Longest silence within an answer"),
  }),
)

const PluginEntry = z.lazy(() =>
  z.union([z.string().min(1), z.tuple([z.string().min(1), z.record(z.string(), z.unknown())])]),
)

/**
 * All that a config file may say. Every level is strict, but for options that go to a provider's package. Functions,
 * since to make all of the schema takes longer than to read and check a usual file.
 */
const sections = {
  $schema: () => z.string().describe("Address of this schema, for editors"),
  model: () => ModelName.describe("The model to use, as provider/model"),
  small_model: () => ModelName.describe("A cheaper model for titles and summaries, as provider/model"),
  default_agent: () => z.string().describe("The agent of a run that names none (default build)"),
  provider: () => z.record(z.string(), ProviderConfig).describe("Model providers by their id"),
  permission: () => PermissionSection,
  agent: () =>
    z.record(z.string(), AgentSection).describe("Agents by name: changes to built-in ones, and own"),
  command: () =>
    z.record(z.string(), CommandSection).describe("Commands by name: prompts that are written as /name"),
  tools: () => z.record(z.string(), z.boolean()).describe("Tools by id: false takes one away"),
  tool_search: () =>
    z
      .union([z.literal(false), ToolSearchSection])
      .describe(
        "When tools of MCP servers, plugins and files are found by a search; false: all are offered at once",
      ),
  override: () => z.array(z.string()).describe("Ids of tools that a custom tool may replace"),
  plugin: () =>
    z
      .array(PluginEntry)
      .describe(
        "Plugins: installed packages by name, or paths; with options as [name, { … }]. Those of all files count",
      ),
  instructions: () =>
    z
      .array(z.string())
      .describe("Files whose text is added to the system prompt; patterns and addresses are allowed"),
  truncate: () => TruncateSection.describe("Limits of tool output"),
  retention: () =>
    RetentionSection.describe("How long and how much is kept of the files beside the sessions"),
  subagent: () => SubagentSection.describe("What the task tool may use"),
  experimental: () => ExperimentalSection.describe("Features that may change"),
  secrets: () =>
    z
      .array(z.string().min(1))
      .describe("Environment variables whose values are hidden in the output of tools"),
  pass_environment: () =>
    z.array(z.string().min(1)).describe("Environment variables that commands get although they hold a key"),
  shell: () =>
    z.string().describe("The shell that runs commands (default: bash where there is one, else sh)"),
  sandbox: () =>
    z
      .enum(["auto", "require", "off"])
      .describe(
        "Commands in a sandbox: where one works (auto, the default), always or not at all (require), never (off)",
      ),
  search: () => SearchConfig.describe("Who searches the web for websearch and codesearch"),
  lsp: () =>
    LspConfig.describe(
      "Language servers by their id: changes to known ones, and own; false: none. For experimental.lsp_tool",
    ),
  formatter: () =>
    FormatterConfig.describe(
      "Programs that format a file after it was changed: true for known ones that the project is set up for, or by name (default false)",
    ),
  mcp: () => McpConfig.describe("MCP servers by their id: their tools are offered as <id>_<tool>"),
  retry: () => RetrySection.describe("How faults of a provider are met"),
  timeout: () => TimeoutSection.describe("Patience with a provider"),
}

/** The keys that a config file may have. */
export const sectionNames: readonly string[] = Object.keys(sections)

/** The schema of a config file; with `keys`, of one that has no others. */
export function configSchema(keys: readonly string[] = sectionNames): z.ZodType {
  const shape = Object.entries(sections).flatMap(([name, make]) =>
    keys.includes(name) ? [[name, make().optional()] as const] : [],
  )
  return z.strictObject(Object.fromEntries(shape))
}

type Sections = { [K in keyof typeof sections]?: z.infer<ReturnType<(typeof sections)[K]>> | undefined }

/** The merged config as plain values. Permission rules are apart: see `LoadedConfig`. */
export type Config = Omit<Sections, "$schema" | "permission" | "agent"> & {
  agent?: Record<string, Omit<z.infer<typeof AgentSection>, "permission">>
}

/** JSON Schema (draft 7) of a config file, for editors. */
export function configJsonSchema(): Record<string, unknown> {
  return z.toJSONSchema(configSchema(), { target: "draft-7", io: "input" })
}
