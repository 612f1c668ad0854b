import { accessSync, constants, existsSync } from "node:fs"
import { describeProblem, type Problem } from "../../config/errors.ts"
import { instructionFiles } from "../../config/instructions.ts"
import { ownConfigDirectories } from "../../config/location.ts"
import { shownName, wholeName } from "../../config/shown-name.ts"
import { openEngine } from "../../engine/create-tackle.ts"
import { dataPaths } from "../../engine/data-directory.ts"
import { noRetentionLimits } from "../../engine/housekeeping.ts"
import type { TackleOptions } from "../../engine/options.ts"
import { keyVariables, storageKeyVariables } from "../../engine/secrets.ts"
import type { Tackle } from "../../engine/tackle.ts"
import type { TackleEvent } from "../../event/events.ts"
import { McpServerError } from "../../mcp/client/errors.ts"
import type { Part } from "../../schema/part.ts"
import { workMs } from "../../schema/tool-state.ts"
import type { Store } from "../../store/store.ts"
import { errorMessage, systemCode, TackleError } from "../../util/errors.ts"
import { counted } from "../../util/words.ts"
import type { Log, LogLevel } from "../process/log.ts"
import { warn } from "../process/notice.ts"
import { definitionSource, definitionsOf } from "./definitions.ts"
import { instructionsNear, readInstructions } from "./instructions.ts"
import { trustedPlugins } from "./plugins.ts"
import { checkRuleFlags, layersOf, misspeltPermissions, type RuleFlags } from "./rules.ts"
import { toolFilesOf } from "./tool-files.ts"
import { openWorkspaceWithProblems, trustedItems, type Workspace, type WorkspaceFlags } from "./workspace.ts"

/**
 * Opens an engine for the workspace. `overrides` take precedence over the options from config and trust. Reports
 * problems with tools and permission names once per process and project, and untrusted items when they change. Throws
 * `UsageError` if a flag contains a misspelled permission.
 */
export async function openTackle(
  workspace: Workspace,
  flags: RuleFlags,
  overrides: Partial<TackleOptions> = {},
): Promise<Tackle> {
  keepKeysFromChildren(workspace)
  const tackle = await openEngine({ ...(await engineOptions(workspace, flags)), ...overrides })
  tackle.subscribe(eventLogger(workspace.log))
  reportIgnored(workspace)
  for (const line of misspeltPermissions(workspace)) warnOnce(workspace, line)
  try {
    await checkRuleFlags(workspace, flags, async () => (await tackle.tools()).map(({ id }) => id))
  } catch (error) {
    await tackle.close()
    throw error
  }
  return tackle
}

/** Opens an engine for the workspace like {@link openTackle}, passes the engine to `work`, and closes the engine. */
export async function withTackle<T>(
  workspace: Workspace,
  work: (tackle: Tackle) => Promise<T>,
  { flags = {}, overrides }: { flags?: RuleFlags; overrides?: Partial<TackleOptions> } = {},
): Promise<T> {
  const tackle = await openTackle(workspace, flags, overrides)
  try {
    return await work(tackle)
  } finally {
    await tackle.close()
  }
}

/**
 * Removes keys from the environment of this process, except those that the config passes on, because custom tools run
 * in this process and start programs with its environment.
 */
function keepKeysFromChildren({ config: { config }, environment }: Workspace): void {
  const { provider, pass_environment: passed = [] } = config
  const keys = [...keyVariables(provider), ...(environment.TACKLE_CONTENTS ? storageKeyVariables : [])]
  for (const name of keys) if (!passed.includes(name)) delete process.env[name]
}

const warned = new Set<string>()

/** Prints a notice once per process and project, because a command may open several engines. */
function warnOnce({ worktree }: Workspace, text: string): void {
  const notice = `${worktree}\0${text}`
  if (warned.has(notice)) return
  warned.add(notice)
  warn(text)
}

/** Most recently reported untrusted items of each project. */
const reportedItems = new Map<string, string>()

function reportIgnored({ config, untrusted, worktree }: Workspace): void {
  const files = untrusted.filter(({ kind }) => kind !== "config").map(({ path }) => shownName(path))
  const ignored = [...config.ignored, ...files]
  const items = ignored.join("; ")
  // A command may open several engines.
  if (items === (reportedItems.get(worktree) ?? "")) return
  reportedItems.set(worktree, items)
  if (items === "") return
  warn(
    `this project is not trusted in its current state. These items are ignored: ${items}. Run \`tackle trust\` to review and enable them.`,
  )
}

/**
 * Opens an engine for stored data, calls the callback, and closes the engine. The engine has no plugins, custom tools
 * or MCP servers, and uses only secrets and limits from the config. Problems in config files are therefore reported but
 * not fatal. If stored data leaves the machine, pass `openWorkspace` as `open`, because with the default, a key in an
 * invalid section would not be masked. If the data directory is read-only, stored data can be read, but changing it
 * throws.
 */
export async function withStore<T>(
  flags: Omit<WorkspaceFlags, "trust">,
  work: (tackle: Tackle) => Promise<T>,
  open: (flags: WorkspaceFlags) => Promise<Workspace> = openWorkspaceWithProblems,
): Promise<T> {
  const workspace = await open(flags)
  reportProblems(workspace.problems)
  const database = workspace.environment.TACKLE_DATABASE
  const store = database ? undefined : await readOnlyStore(workspace.dataDirectory)
  const tackle = await openEngine({
    directory: workspace.directory,
    worktree: workspace.worktree,
    dataDirectory: workspace.dataDirectory,
    environment: workspace.environment,
    mask: workspace.mask,
    limits: limitsOf(workspace),
    store,
    database,
    contents: workspace.environment.TACKLE_CONTENTS,
    onProblem(message, error) {
      // Nothing can be cleaned up in a read-only directory.
      if (store && /^(EROFS|EACCES|EPERM)$/.test(systemCode(error) ?? "")) return
      reportProblem(workspace, message, error)
    },
  })
  tackle.subscribe(eventLogger(workspace.log))
  try {
    return await work(tackle)
  } finally {
    await tackle.close()
    await store?.close()
  }
}

/**
 * Opens the database in a read-only data directory. Returns undefined if the directory is writable or has no database.
 */
async function readOnlyStore(dataDirectory: string): Promise<Store | undefined> {
  const { database } = dataPaths(dataDirectory)
  if (!existsSync(database) || [dataDirectory, database].every(isWritable)) return undefined
  const { openReadOnlySqliteStore } = await import("../../store/sqlite.ts")
  const { store, isCurrent } = await openReadOnlySqliteStore(database)
  if (!isCurrent)
    warn(
      `the latest changes are missing, because ${dataDirectory} is read-only and the write-ahead log of its database cannot be read.`,
    )
  return store
}

/** Returns true if the current user may write to the file or directory. */
export function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Reports the first problem on one line. If there are more problems, the line shows the command that lists them. */
export function reportProblems([first, ...others]: readonly Problem[]): void {
  if (first === undefined) return
  const more = others.length > 0 ? ` (${counted(others.length, "more problem")}: run \`tackle doctor\`)` : ""
  warn(`part of the config is invalid and ignored: ${wholeName(describeProblem(first))}${more}`)
}

/** Returns the engine options from config and trust. Reports instructions that cannot be read. */
async function engineOptions(workspace: Workspace, flags: RuleFlags): Promise<TackleOptions> {
  const { config } = workspace.config
  const plugins = trustedPlugins(workspace, trustedItems(workspace, "plugin"))
  const definitions = definitionsOf(workspace)
  return {
    directory: workspace.directory,
    worktree: workspace.worktree,
    dataDirectory: workspace.dataDirectory,
    environment: workspace.environment,
    providers: config.provider ?? {},
    toolFiles: toolFilesOf(workspace),
    plugins,
    onPluginLog: ({ plugin, level, message, extra }) =>
      workspace.log.write(isLevel(level) ? level : "info", `${plugin}: ${message}`, { extra }),
    override: config.override ?? [],
    disabledTools: Object.entries(config.tools ?? {}).flatMap(([id, on]) => (on ? [] : [id])),
    layers: layersOf(workspace, flags),
    ...definitions,
    definitions: definitionSource(workspace, { definitions, plugins }),
    instructions: await readInstructions(
      { found: instructionFiles(workspace), named: config.instructions ?? [] },
      { worktree: workspace.worktree, trusted: workspace.trusted },
      warn,
    ),
    instructionsNear: instructionsNear(
      workspace,
      { trusted: workspace.trusted, named: config.instructions ?? [] },
      warn,
    ),
    limits: limitsOf(workspace),
    onProblem: (message, error) => void reportProblem(workspace, message, error),
    database: workspace.environment.TACKLE_DATABASE,
    contents: workspace.environment.TACKLE_CONTENTS,
    model: config.model,
    defaultAgent: config.default_agent,
    shell: config.shell,
    secrets: config.secrets,
    passEnvironment: config.pass_environment,
    ...sandboxOptions(config.sandbox, flags),
    configFiles: workspace.config.files.map(({ path }) => path),
    configDirectories: ownConfigDirectories(workspace),
    search: config.search,
    toolSearch: config.tool_search,
    experimental: config.experimental,
    lsp: config.lsp,
    tenants: config.tenants,
    formatter: config.formatter,
    mcp: config.mcp,
    trusted: workspace.trusted,
    mask: workspace.mask,
  }
}

/**
 * Returns the limits from the config. If the config has problems, old files are kept, because the retention setting may
 * be invalid.
 */
function limitsOf({ config: loaded, problems }: Workspace): NonNullable<TackleOptions["limits"]> {
  const { truncate = {}, timeout = {}, retry = {}, subagent = {}, retention = {} } = loaded.config
  const isValid = problems.length === 0
  return {
    output: defined({ maxLines: truncate.maxLines, maxBytes: truncate.maxBytes }),
    stream: defined({
      firstByteMs: milliseconds(timeout.firstByteSeconds),
      idleMs: milliseconds(timeout.idleSeconds),
    }),
    retry: defined({ maxAttempts: retry.maxAttempts, ceilingMs: milliseconds(retry.maxDelaySeconds) }),
    subagent: defined({
      depth: subagent.depth,
      timeMs: milliseconds(subagent.timeoutSeconds),
      steps: subagent.steps,
      tokens: subagent.tokens,
    }),
    spillBytes: truncate.spillBytes,
    retention: isValid ? retention : noRetentionLimits,
    retentionDays: isValid ? truncate.retentionDays : noRetentionLimits.days,
  }
}

function milliseconds(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000
}

/** Removes undefined values, which would override the engine's defaults. */
function defined<T extends object>(limits: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>
  }
}

function isLevel(level: string): level is LogLevel {
  return ["debug", "info", "warn", "error"].includes(level)
}

/** Returns the engine options for the `sandbox` setting and the `--sandboxed` flag. */
export function sandboxOptions(
  setting: Workspace["config"]["config"]["sandbox"],
  { sandboxed }: RuleFlags,
): Pick<TackleOptions, "sandbox" | "sandboxAllow"> {
  const { mode, allow } = typeof setting === "object" ? setting : { mode: setting }
  return { sandbox: mode, sandboxAllow: sandboxed ? "auto" : allow }
}

/** Reports a problem in the log and on stderr. Returns the text that is shown on stderr. */
export function reportProblem(workspace: Workspace, message: string, error: unknown): string {
  workspace.log.write("error", message, { error: errorMessage(error) })
  // A command may open several engines, each of which reports the same invalid files.
  const isFile = error instanceof TackleError && error.code === "definition.file"
  const text = workspace.hide(`${isFile ? wholeName(message) : message}: ${errorMessage(error)}`)
  if (isFile) warnOnce(workspace, text)
  else warn(text)
  return text
}

/**
 * Returns a listener for `TackleOptions.onProblem` that reports all problems except unavailable MCP servers. For
 * commands that list the servers with their problems.
 */
export function problemsExceptServers(workspace: Workspace): NonNullable<TackleOptions["onProblem"]> {
  return (message, error) => {
    if (!(error instanceof McpServerError)) reportProblem(workspace, message, error)
  }
}

/**
 * Returns a subscriber that logs the start and end of runs, the end of steps and calls, permission requests and their
 * answers, retries and errors. Does not log texts, commands or file contents, because this data may contain secrets
 * and is already stored in the session.
 */
function eventLogger(log: Log): (event: TackleEvent) => void {
  return (event) => {
    const session = event.sessionID
    switch (event.type) {
      case "message.created":
        if (event.message.role === "user")
          log.write("info", "run started", { session, ...about(event.message) })
        return
      case "part.updated":
        return notePart(log, event.part)
      case "permission.asked": {
        const { id: request, permission, tool } = event.request
        return log.write("info", "asked", { session, request, permission, call: tool?.callID })
      }
      case "permission.replied": {
        const { requestID: request, reply, source } = event
        return log.write("info", "answered", { session, request, reply, by: source })
      }
      case "session.error":
        return log.write("error", "run failed", { session, error: event.error })
      case "run.completed": {
        const { status, exitCode, durationMs, usage, refused } = event
        const fields = { session, status, exitCode, durationMs, usage, refused: refused.length }
        return log.write("info", "run ended", fields)
      }
    }
  }
}

function about({ agent, model }: { agent: string; model?: unknown }) {
  return { agent, model }
}

function notePart(log: Log, part: Part): void {
  const session = part.sessionID
  if (part.type === "step-finish") {
    const { reason, tokens, cost } = part
    log.write("info", "step", { session, answer: part.messageID, reason, tokens, cost })
  } else if (part.type === "retry") {
    const { attempt, error, delayMs } = part
    log.write("warn", "retry", { session, attempt, error, delayMs })
  } else if (part.type === "tool" && (part.state.status === "completed" || part.state.status === "error")) {
    const { callID: call, tool, state } = part
    const { status, time, metadata } = state
    log.write("info", "call", {
      session,
      call,
      tool,
      status,
      kind: metadata?.kind,
      durationMs: workMs(time),
    })
  }
}
