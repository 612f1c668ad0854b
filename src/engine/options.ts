import type { RecordedResults } from "../call/call.ts"
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
import type { MentionedFiles } from "../session/attach-mentions.ts"
import type { CommandConfig } from "../session/command.ts"
import type { SubagentLimits } from "../session/session-engine.ts"
import type { SkillFile } from "../skill/skill.ts"
import type { Store } from "../store/store.ts"
import type { FoundInstructions } from "../tool/context.ts"
import type { SecretMask } from "../tool/secrets.ts"
import type { Info, OutputLimits } from "../tool/tool.ts"
import type { SearchConfig } from "../tools/web/choose-search.ts"
import type { AgentOptions, DefinitionSource } from "./definitions.ts"
import type { RetentionLimits } from "./retention.ts"

/**
 * Options of an engine. Only `directory` is required. The engine reads no config files: pass everything explicitly.
 */
export interface TackleOptions extends AgentOptions {
  /** Where the agent works. */
  directory: string
  /** The project's root. Default: the nearest parent with `.git`, else the directory. */
  worktree?: string
  /** `provider/model`, a model of the AI SDK, or a Tackle model. Without it an agent or session must name one. */
  model?: string | LanguageModel | Model
  /** Providers, in the shape of the config. */
  providers?: Readonly<Record<string, ProviderConfig>>
  /** Custom tools in addition to the built-in ones. */
  tools?: readonly Info[]
  /**
   * Files with custom tools, or where to find them. Without `pinned` their code runs as it is: name only trusted
   * files. A changed file is loaded again before the next step.
   */
  toolFiles?: readonly (string | ToolFile)[] | ToolFileSource
  /**
   * Plugins in loading and calling order: see `docs/plugins.md`. Without `pinned` their code runs as it is: name only
   * trusted plugins.
   */
  plugins?: readonly PluginSource[]
  /**
   * `SKILL.md` files in rising precedence. Name only trusted files, because models follow them. A file that is invalid
   * or differs from its `pinned` hash is skipped.
   */
  skillFiles?: readonly (string | SkillFile)[]
  /**
   * Makes agents, commands and skills follow their files. The options above are the initial state; this source is read
   * when a file changed. A change applies from the next step; the agent of a running prompt keeps its definition.
   */
  definitions?: DefinitionSource
  /** Ids of tools that a later tool may replace. */
  override?: readonly string[]
  /**
   * Size of third-party tool definitions in bytes from which the model finds tools by `tool_search`. False: all tools
   * are offered. Default: 64 KB.
   */
  toolSearch?: { maxBytes?: number | undefined } | false
  /** Ids of tools to disable. */
  disabledTools?: readonly string[]
  /** Rules in the shape of the config, above the defaults. */
  permission?: PermissionConfig
  /** Layers of rules in rising order, instead of `permission`. */
  layers?: readonly Layer[]
  /** Prompts by name, in the shape of the config: see `Tackle.commands`. */
  commands?: Readonly<Record<string, CommandConfig>>
  defaultAgent?: string
  /** The shell that runs commands. Default: bash if installed, else sh. */
  shell?: string
  /** Names of environment variables whose values are hidden, in addition to the providers' keys. */
  secrets?: readonly string[]
  /** Names of environment variables that commands receive although they contain provider keys. */
  passEnvironment?: readonly string[]
  /** Whether commands run in a sandbox: if one works, always (else refuse), or never. Default: `auto`. */
  sandbox?: SandboxMode
  /** The files that the configuration came from. Sandboxed commands cannot change them. */
  configFiles?: readonly string[]
  /**
   * Directories of the user's own config, existing or not. Sandboxed commands cannot change them, and any other change
   * asks: their files may run without a question.
   */
  configDirectories?: readonly string[]
  /**
   * True if the model's questions are answered. Default: true while a listener for `question.asked` is registered.
   * Otherwise the `question` tool is not offered.
   */
  questions?: boolean
  /** The web search service. Default: the one whose key is in the environment. */
  search?: SearchConfig
  /**
   * Language servers by id: changes to the known ones, and further ones. False: none. Requires the feature `lsp_tool`.
   */
  lsp?: LspConfig
  /**
   * Formatters that run after a file was changed: true for the known ones that the project uses, or by name. In a
   * project that is not `trusted`, programs of the project do not run, nor programs that may run project code; a
   * configured command counts as one unless it has `runsProjectCode: false`. Default: false.
   */
  formatter?: FormatterConfig
  /** MCP servers by id, in the shape of the config. Each is a program to run or an address to connect to. */
  mcp?: McpConfig
  /** True if the user trusts the project, so that language servers in its `node_modules` may run. Default: false. */
  trusted?: boolean
  /** Experimental features by their names in the config. */
  experimental?: Readonly<Record<string, boolean | undefined>>
  /** Texts for every system prompt. */
  instructions?: readonly string[]
  /**
   * Returns texts for the files of a directory. A session gives them to the model once, with the first file that it
   * reads there (links followed).
   */
  instructionsNear?: (file: string) => Promise<FoundInstructions[]>
  /** Default: SQLite in the data directory. The engine closes only a store that it opened. */
  store?: Store
  /** Default: `$TACKLE_DATA_DIR`, else `$XDG_DATA_HOME/tackle`, else `~/.local/share/tackle`. */
  dataDirectory?: string
  /** Default: the environment of the process. */
  environment?: Readonly<Record<string, string | undefined>>
  limits?: {
    output?: Partial<OutputLimits>
    spillBytes?: number
    /** Days to keep full outputs. Default: as for other files. */
    retentionDays?: number
    /** How long and how much of the files beside the database is kept. Default: 7 days, 512 MB. */
    retention?: Partial<RetentionLimits>
    stream?: Partial<StreamLimits>
    retry?: Partial<RetryLimits>
    /** Time limits for a plugin's start and for each hook. Default: 20 s and 10 s. */
    plugin?: Partial<PluginLimits>
    /** Limits of one `task`, and the maximum depth of subagents. */
    subagent?: Partial<SubagentLimits>
  }
  /** Sends the requests to models that are given by name. Default: Node's HTTP client. */
  fetch?: typeof fetch
  /** Wraps the `fetch` of all models, including one from a plugin. */
  aroundFetch?: (ask: typeof fetch) => typeof fetch
  /** Replays a run: calls return these results and do nothing. Models receive no keys, and no sign-in from plugins. */
  recorded?: RecordedResults
  /** Hides secrets in everything that is stored and published. The engine adds secrets that it learns of. Default: a new mask. */
  mask?: SecretMask
  /** Wraps the reading of files that prompts mention with `@`. `find` reads them. */
  attach?: (find: () => Promise<MentionedFiles>) => Promise<MentionedFiles>
  /** Wraps the opening of MCP servers. `open` opens them, if there are any. */
  openMcp?: (open: () => Promise<McpPool | undefined>) => Promise<McpPool | undefined>
  /**
   * Receives problems that do not stop the engine: an error that escaped a tool, a subscriber that threw. Default:
   * stderr.
   */
  onProblem?: (message: string, error: unknown) => void
  /** Receives log entries of plugins. Default: ignored. */
  onPluginLog?: (entry: { plugin: string; level: string; message: string; extra?: unknown }) => void
}
