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
import type { PluginLimits } from "../plugin/open.ts"
import type { PluginSource } from "../plugin/source.ts"
import type { ToolFileSource } from "../registry/live-tool-files.ts"
import type { ToolFile } from "../registry/load-tool-file.ts"
import type { SandboxMode } from "../sandbox/sandbox.ts"
import type { MentionedFiles } from "../session/attach-mentions.ts"
import type { CommandConfig } from "../session/command.ts"
import type { SubagentLimits } from "../session/session-engine.ts"
import type { SkillFile } from "../skill/load-skills.ts"
import type { Store } from "../store/store.ts"
import type { FoundInstructions } from "../tool/context.ts"
import type { SecretMask } from "../tool/secrets.ts"
import type { Info, OutputLimits } from "../tool/tool.ts"
import type { SearchConfig } from "../tools/web/choose-search.ts"
import type { AgentOptions, DefinitionSource } from "./definitions.ts"
import type { RetentionLimits } from "./retention.ts"

/** What an engine is made of. Only `directory` is needed; nothing is read from files but what is named here. */
export interface TackleOptions extends AgentOptions {
  /** Where the agent works. */
  directory: string
  /** The project's root. Default: the nearest parent with `.git`, else the directory. */
  worktree?: string
  /** `provider/model`, a model of the AI SDK, or one of ours. Without it an agent or session has to name one. */
  model?: string | LanguageModel | Model
  /** Providers in the shape of the config. */
  providers?: Readonly<Record<string, ProviderConfig>>
  /** Own tools beside the built-in ones. */
  tools?: readonly Info[]
  /**
   * Files with custom tools, or where to look for them. Without `pinned` they are run as they are: name only what is
   * trusted. They are followed: a change counts from the next time that the model is asked.
   */
  toolFiles?: readonly (string | ToolFile)[] | ToolFileSource
  /**
   * Plugins in the order in which they are loaded and called: see `docs/plugins.md`. Without `pinned` they are run as
   * they are: name only what is trusted.
   */
  plugins?: readonly PluginSource[]
  /**
   * `SKILL.md` files in rising precedence: name only what is trusted, since models follow them. One that cannot be used,
   * or is not what is `pinned`, is left out.
   */
  skillFiles?: readonly (string | SkillFile)[]
  /**
   * Has agents with their rules, commands and skills follow their files: what stands above is what they are at first, and
   * this is asked when something there changed. A change counts from the next step of a run on; who works on a prompt
   * stays as it was when that began.
   */
  definitions?: DefinitionSource
  /** Ids that a later tool may take from an earlier one. */
  override?: readonly string[]
  /**
   * Where the definitions of tools that are not built in come to more bytes than this, the model finds them by
   * `tool_search`. False: it is offered all at once. Default: 64 KB.
   */
  toolSearch?: { maxBytes?: number | undefined } | false
  /** Ids that are not to be there at all. */
  disabledTools?: readonly string[]
  /** Rules in the shape of the config. They come over the defaults. */
  permission?: PermissionConfig
  /** Further layers of rules, in rising order, in place of `permission`. */
  layers?: readonly Layer[]
  /** Prompts by name, in the shape of the config: see `Tackle.commands`. */
  commands?: Readonly<Record<string, CommandConfig>>
  defaultAgent?: string
  /** The shell that runs commands. Default: bash where there is one, else sh. */
  shell?: string
  /** Names of environment variables whose values are hidden in what tools leave behind, beside the providers' keys. */
  secrets?: readonly string[]
  /** Names of environment variables that commands get all the same: keys of providers are otherwise kept from them. */
  passEnvironment?: readonly string[]
  /** Commands in a sandbox: where one works, always or not at all, never. Default: `auto`. */
  sandbox?: SandboxMode
  /** Files that the configuration came from: no command in a sandbox changes them. */
  configFiles?: readonly string[]
  /**
   * Directories of the person's own config, there or not: no command in a sandbox changes them, and every other change
   * asks. What lies there may be run unasked.
   */
  configDirectories?: readonly string[]
  /**
   * True: somebody answers the questions of the model. Default: as long as somebody listens to `question.asked`.
   * Without it the `question` tool is not offered.
   */
  questions?: boolean
  /** Who searches the web. Default: what the environment has a key for. */
  search?: SearchConfig
  /**
   * Language servers by their id: changes to the known ones, and own; false: none. They need the feature `lsp_tool`.
   */
  lsp?: LspConfig
  /**
   * Programs that format a file after it was changed: true for the known ones that the project is set up for, or by name.
   * In a project that is not `trusted` none of its own programs, and none that may run code its files name: of
   * commands that are given those that do not say `runsProjectCode: false`. Default: false.
   */
  formatter?: FormatterConfig
  /** MCP servers by their id, in the shape of the config. Each is a program that runs, or an address that is asked. */
  mcp?: McpConfig
  /** True: the person trusts the project, so that language servers of its own `node_modules` may run. Default: false. */
  trusted?: boolean
  /** Features that may change, by their names in the config: true switches one on. */
  experimental?: Readonly<Record<string, boolean | undefined>>
  /** Texts that are added to every system prompt. */
  instructions?: readonly string[]
  /** Texts for the files of a directory, given to the model once a session with the first file (links followed) read there. */
  instructionsNear?: (file: string) => Promise<FoundInstructions[]>
  /** Default: SQLite in the data directory. The engine closes only what it opened itself. */
  store?: Store
  /** Default: `$TACKLE_DATA_DIR`, else `$XDG_DATA_HOME/tackle`, else `~/.local/share/tackle`. */
  dataDirectory?: string
  /** Default: that of the process. */
  environment?: Readonly<Record<string, string | undefined>>
  limits?: {
    output?: Partial<OutputLimits>
    spillBytes?: number
    /** Days that full outputs are kept. Default: as other files. */
    retentionDays?: number
    /** How long and how much of the files beside the database is kept. Default: 7 days, 512 MB. */
    retention?: Partial<RetentionLimits>
    stream?: Partial<StreamLimits>
    retry?: Partial<RetryLimits>
    /** Of a plugin's start and of each hook. Default: 20 s and 10 s. */
    plugin?: Partial<PluginLimits>
    /** What one `task` may use, and how deep subagents may go. */
    subagent?: Partial<SubagentLimits>
  }
  /** What models that are named are asked with. Default: Node's own HTTP client. */
  fetch?: typeof fetch
  /** Stands between the models and what they are asked with, which a plugin may have given: all requests go through it. */
  aroundFetch?: (ask: typeof fetch) => typeof fetch
  /** Plays a run back: calls end as this says and do nothing. Models get no keys, and of plugins nothing for signing in. */
  recorded?: RecordedResults
  /** Hides secrets in all that is stored and told. The engine adds those that it comes to know. Default: one of its own. */
  mask?: SecretMask
  /** Stands between the engine and the reading of what prompts mention with `@`: `find` reads it. */
  attach?: (find: () => Promise<MentionedFiles>) => Promise<MentionedFiles>
  /** Stands between the engine and its MCP servers: `open` gives them, where there are any. */
  openMcp?: (open: () => Promise<McpPool | undefined>) => Promise<McpPool | undefined>
  /** Faults that stop nothing: an error that escaped a tool, a subscriber that threw. Default: stderr. */
  onProblem?: (message: string, error: unknown) => void
  /** What plugins note for the log. Default: nowhere. */
  onPluginLog?: (entry: { plugin: string; level: string; message: string; extra?: unknown }) => void
}
