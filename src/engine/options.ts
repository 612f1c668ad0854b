import { statSync } from "node:fs"
import { resolve } from "node:path"
import type { RecordedResults } from "../call/context.ts"
import { findWorktree } from "../config/location.ts"
import type { FormatterConfig } from "../formatter/config.ts"
import type { LspConfig } from "../lsp/config.ts"
import type { McpConfig } from "../mcp/client/config.ts"
import type { McpPool } from "../mcp/client/pool.ts"
import type { LanguageModel, Model, ProviderConfig } from "../model/model.ts"
import type { RetryLimits } from "../model/retry.ts"
import type { StreamLimits } from "../model/stream.ts"
import type { Layer } from "../permission/policy.ts"
import type { PermissionConfig } from "../permission/rules.ts"
import type { PluginLimits } from "../plugin/plugins.ts"
import type { PluginSource } from "../plugin/source.ts"
import type { ToolFileSource } from "../registry/live-tool-files.ts"
import type { ToolFile } from "../registry/load-tool-file.ts"
import type { SandboxMode } from "../sandbox/sandbox.ts"
import type { CommandConfig } from "../session/command.ts"
import type { Dispatch } from "../session/inputs.ts"
import type { MentionedFiles } from "../session/mentions.ts"
import type { RunSlots } from "../session/run-slots.ts"
import type { SubagentLimits } from "../session/session-engine.ts"
import type { SkillFile } from "../skill/skill.ts"
import type { ContentStore } from "../store/content-store.ts"
import type { Store } from "../store/store.ts"
import type { TenantLimits } from "../store/tenants.ts"
import type { FoundInstructions } from "../tool/context.ts"
import type { SecretMask } from "../tool/secrets.ts"
import type { Info, OutputLimits } from "../tool/tool.ts"
import type { SearchConfig } from "../tools/web/choose-search.ts"
import { errorMessage, UsageError } from "../util/errors.ts"
import { type DataPaths, dataPaths, defaultDataDirectory } from "./data-directory.ts"
import type { AgentOptions, DefinitionSource } from "./definitions.ts"
import type { RetentionLimits } from "./housekeeping.ts"

/**
 * Options for an engine. Only `directory` is required. The engine reads no config files: pass everything explicitly.
 */
export interface TackleOptions extends AgentOptions {
  /** Directory in which the agent works. */
  directory: string
  /**
   * Root of the project. Default: the nearest directory from `directory` upward that contains `.git`, otherwise
   * `directory`.
   */
  worktree?: string
  /**
   * A name (`provider/model`), an AI SDK model, or a Tackle model. If absent, an agent or session must specify a model.
   */
  model?: string | LanguageModel | Model
  /** Providers keyed by id, in the config format. */
  providers?: Readonly<Record<string, ProviderConfig>>
  /** Custom tools in addition to the built-in tools. */
  tools?: readonly Info[]
  /**
   * Files with custom tools, or a source that finds them. Code without `pinned` hashes runs unchecked, so list only
   * trusted files. A changed file is loaded again before the next step.
   */
  toolFiles?: readonly (string | ToolFile)[] | ToolFileSource
  /**
   * Plugins in the order in which they are loaded and called: see `docs/plugins.md`. Code without `pinned` hashes runs
   * unchecked, so list only trusted plugins.
   */
  plugins?: readonly PluginSource[]
  /**
   * Paths of `SKILL.md` files in ascending precedence. Models follow the instructions in these files, so list only
   * trusted files. A file that is invalid or differs from its `pinned` hash is skipped.
   */
  skillFiles?: readonly (string | SkillFile)[]
  /**
   * Source from which agents, commands and skills are reloaded when their files change. The definitions in the other
   * options are the initial state. A change takes effect at the next step, but the agent of a running prompt keeps its
   * definition.
   */
  definitions?: DefinitionSource
  /** Ids of tools that a later tool with the same id may replace. */
  override?: readonly string[]
  /**
   * Maximum total size of third-party tool definitions, in bytes. If the definitions are larger, the model finds
   * third-party tools with `tool_search`. Set to false to offer all tools at every step. Default: 64 KB.
   */
  toolSearch?: { maxBytes?: number | undefined } | false
  /** Ids of tools to disable. */
  disabledTools?: readonly string[]
  /** Permission rules in the config format. They override the defaults. */
  permission?: PermissionConfig
  /** Layers of rules in ascending precedence. If set, `permission` is ignored. */
  layers?: readonly Layer[]
  /** Commands keyed by name, in the config format: see `Tackle.commands`. */
  commands?: Readonly<Record<string, CommandConfig>>
  defaultAgent?: string
  /** The shell that runs commands. Default: bash if it is installed, otherwise sh. */
  shell?: string
  /** Names of environment variables whose values are hidden, in addition to known keys. */
  secrets?: readonly string[]
  /** Names of environment variables that are passed to commands even if they contain known keys. */
  passEnvironment?: readonly string[]
  /**
   * When commands run in a sandbox: if a sandbox works (`auto`), always (`require`) or never (`off`). With `require`,
   * commands are refused if no sandbox works. Default: `auto`.
   */
  sandbox?: SandboxMode
  /**
   * With `auto`, commands that run in a working sandbox need no permission. An effect outside the sandbox still
   * requires permission. Deny rules and rules for a specific command still apply. Default: the rules decide.
   */
  sandboxAllow?: "auto"
  /** Files from which the configuration was read. Sandboxed commands cannot change them. */
  configFiles?: readonly string[]
  /**
   * Directories of the user's own config. They may be missing. Sandboxed commands cannot change them, and any other
   * change requires permission, because files in these directories may run without permission.
   */
  configDirectories?: readonly string[]
  /**
   * Whether the host answers permission requests. If false, requests are refused, and the first refusal is reported to
   * `onProblem`. Default: true while a listener for `permission.asked` is registered.
   */
  approvals?: boolean
  /**
   * Whether the host answers the model's questions. If false, the `question` tool is not offered. Default: true while
   * a listener for `question.asked` is registered.
   */
  questions?: boolean
  /**
   * The web search service. Default: the service whose key or URL is in the environment, otherwise Exa without a key.
   */
  search?: SearchConfig
  /**
   * Language servers keyed by id: changes to known servers, and additional servers. Set to false for no servers.
   * Requires the experimental feature `lsp_tool`.
   */
  lsp?: LspConfig
  /**
   * Formatters that run after a file is changed, keyed by name. Set to true for all known formatters that the project
   * uses. Unless the project is `trusted`, the project's programs and programs that may run project code do not run. A
   * configured command is assumed to run project code unless it has `runsProjectCode: false`. Default: false.
   */
  formatter?: FormatterConfig
  /** MCP servers keyed by id, in the config format. Each server is a program to run or an address to connect to. */
  mcp?: McpConfig
  /**
   * Whether the user trusts the project. If so, programs in its `node_modules`, such as language servers, may run.
   * Default: false.
   */
  trusted?: boolean
  /** Experimental features, keyed by the same names as in the config. True enables the feature. */
  experimental?: Readonly<Record<string, boolean | undefined>>
  /** Texts to add to every system prompt. */
  instructions?: readonly string[]
  /**
   * Returns the additional instructions that apply to a file, nearest last. A session passes each instruction to the
   * model once, with the first file that the model reads to which the instruction applies. `file` is a path with links
   * resolved.
   */
  instructionsNear?: (file: string) => Promise<FoundInstructions[]>
  /** The session store. Default: {@link database}. The engine closes only a store that it opened. */
  store?: Store
  /**
   * URL of the PostgreSQL database for sessions, as for `openPostgresStore`. Default: SQLite in the data directory.
   * Full outputs and plans stay in the data directory.
   */
  database?: string
  /**
   * Storage for the contents of changed files: the URL `s3://bucket/prefix` of S3-compatible storage, whose keys come
   * from the AWS environment variables, or your own store. Default: the PostgreSQL database for sessions, if any,
   * otherwise the data directory.
   */
  contents?: string | ContentStore
  /**
   * Passes sessions with new input to workers, as `Dispatcher.enqueue` does, instead of running them. If the {@link
   * store} is in PostgreSQL, the input is stored and the worker is requested in one transaction.
   */
  dispatch?: Dispatch
  /**
   * Address of this machine at which the engine receives streamed text from other engines on the same database, or
   * `0.0.0.0` for all addresses. Connections are encrypted and need a key that is sent through the database. Without a
   * connection, the text is sent through the database. Default: `127.0.0.1`.
   */
  streamHost?: string
  /** True for a worker's engine. If its process ends, other workers continue its sessions. Default: false. */
  isWorker?: boolean
  /**
   * Directory for sessions and other data. Default: `$TACKLE_DATA_DIR` if it is set, otherwise `$XDG_DATA_HOME/tackle`
   * or `~/.local/share/tackle`.
   */
  dataDirectory?: string
  /** Environment variables. Default: the variables of the process. */
  environment?: Readonly<Record<string, string | undefined>>
  limits?: {
    output?: Partial<OutputLimits>
    spillBytes?: number
    /** Number of days that full outputs are kept. Default: the `days` of `retention`. */
    retentionDays?: number
    /** Age and size limits for the files next to the database. Default: 7 days, 512 MB. */
    retention?: Partial<RetentionLimits>
    stream?: Partial<StreamLimits>
    retry?: Partial<RetryLimits>
    /** Time limits for the start of a plugin and for each hook. Default: 20 s and 10 s. */
    plugin?: Partial<PluginLimits>
    /** Limits for one `task` call, and the maximum subagent depth. */
    subagent?: Partial<SubagentLimits>
  }
  /**
   * Limits keyed by tenant, across all engines that share the store. The limits for `*` apply to tenants without their
   * own entry. Sessions without a tenant have no limits.
   */
  tenants?: Readonly<Record<string, TenantLimits>>
  /** Slots that limit how many prompts run at once in all engines that share the slots. Default: no limit. */
  runSlots?: RunSlots
  /** Sends the requests to models that are selected by name. Default: Node's HTTP client. */
  fetch?: typeof fetch
  /** Wraps the `fetch` function of models that are selected by name, even if a plugin provides the function. */
  aroundFetch?: (ask: typeof fetch) => typeof fetch
  /**
   * Results of a recorded run to replay. Calls return these results and have no effects outside the session. Models
   * receive neither keys nor sign-ins from plugins.
   */
  recorded?: RecordedResults
  /**
   * Mask that hides secrets in everything that is stored or published. The engine adds secrets to it when it learns
   * them. Default: a new mask.
   */
  mask?: SecretMask
  /** Wraps the reading of files that prompts mention with `@`. `find` reads the files. */
  attach?: (find: () => Promise<MentionedFiles>) => Promise<MentionedFiles>
  /** Wraps the opening of MCP servers. `open` opens the enabled servers, if any. */
  openMcp?: (open: () => Promise<McpPool | undefined>) => Promise<McpPool | undefined>
  /**
   * Receives problems that do not stop the engine, such as an error that escaped from a tool or an exception in a
   * subscriber. Default: writes them to stderr.
   */
  onProblem?: (message: string, error: unknown) => void
  /** Receives log entries from plugins. Default: ignores them. */
  onPluginLog?: (entry: { plugin: string; level: string; message: string; extra?: unknown }) => void
}

/** The names of all options. */
export const optionNames: Record<keyof TackleOptions, true> = {
  directory: true,
  worktree: true,
  model: true,
  providers: true,
  tools: true,
  toolFiles: true,
  plugins: true,
  skillFiles: true,
  definitions: true,
  override: true,
  toolSearch: true,
  disabledTools: true,
  permission: true,
  layers: true,
  commands: true,
  defaultAgent: true,
  shell: true,
  secrets: true,
  passEnvironment: true,
  sandbox: true,
  sandboxAllow: true,
  configFiles: true,
  configDirectories: true,
  approvals: true,
  questions: true,
  search: true,
  lsp: true,
  formatter: true,
  mcp: true,
  trusted: true,
  experimental: true,
  instructions: true,
  instructionsNear: true,
  store: true,
  database: true,
  contents: true,
  dispatch: true,
  streamHost: true,
  isWorker: true,
  dataDirectory: true,
  environment: true,
  limits: true,
  tenants: true,
  runSlots: true,
  fetch: true,
  aroundFetch: true,
  recorded: true,
  mask: true,
  attach: true,
  openMcp: true,
  onProblem: true,
  onPluginLog: true,
  agents: true,
  agentRules: true,
  projectAgentRules: true,
  environmentAgentRules: true,
}

/** An engine's directories and environment. All paths are absolute. */
export interface EngineLocation {
  directory: string
  worktree: string
  dataDirectory: string
  data: DataPaths
  environment: Readonly<Record<string, string | undefined>>
  /** Receives problems that do not stop the engine. */
  onProblem(message: string, error: unknown): void
}

/**
 * Returns the location that the options describe, with defaults applied. Throws `UsageError` if a directory does not
 * exist.
 */
export function locationOf(given: TackleOptions): EngineLocation {
  const { environment = process.env } = given
  const directory = existing("directory", given.directory)
  const dataDirectory = resolve(given.dataDirectory ?? defaultDataDirectory(environment))
  return {
    directory,
    worktree: existing("worktree", given.worktree ?? findWorktree(directory)),
    dataDirectory,
    data: dataPaths(dataDirectory),
    environment,
    onProblem:
      given.onProblem ?? ((message, error) => console.error(`tackle: ${message}: ${errorMessage(error)}`)),
  }
}

/**
 * Returns the absolute path of a directory that an option specifies. Throws `UsageError` if the directory does not
 * exist.
 */
function existing(option: "directory" | "worktree", path: unknown): string {
  if (typeof path !== "string" || path === "")
    throw new UsageError(`The ${option} option of createTackle must be the path of a directory.`)
  const absolute = resolve(path)
  if (!statSync(absolute, { throwIfNoEntry: false })?.isDirectory())
    throw new UsageError(`The ${option} option of createTackle is ${absolute}, which is not a directory.`)
  return absolute
}
