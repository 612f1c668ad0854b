import { hostname } from "node:os"
import { dirname } from "node:path"
import { holdProcess } from "../call/escaped-errors.ts"
import { createQuestions } from "../call/questions.ts"
import { holdPrograms } from "../call/started-programs.ts"
import { branchOf } from "../config/location.ts"
import { createBus } from "../event/bus.ts"
import { createPathLocks } from "../files/file-tracker.ts"
import { defaultScanLimits } from "../files/scan.ts"
import { createTemporaryFileJournal } from "../files/temporary-files.ts"
import { createTurnChanges } from "../files/turn-changes.ts"
import { createFormatterService } from "../formatter/service.ts"
import { createCredentials } from "../model/credentials.ts"
import { parseModelName } from "../model/model.ts"
import { defaultRetryLimits } from "../model/retry.ts"
import { defaultStreamLimits } from "../model/stream.ts"
import { createPermission } from "../permission/permission.ts"
import type { Plugins } from "../plugin/plugins.ts"
import type { ToolListing } from "../registry/registry.ts"
import { createPlaceholderJournal } from "../sandbox/placeholders.ts"
import type { ModelRef } from "../schema/message.ts"
import { settleKilled } from "../session/crash-recovery.ts"
import { defaultToolBytes } from "../session/deferred-tools.ts"
import { EngineClosedError } from "../session/handle.ts"
import { createLineage } from "../session/lineage.ts"
import { maskStore } from "../session/masked-store.ts"
import { openSession } from "../session/session.ts"
import type { SessionEngine, SubagentServices } from "../session/session-engine.ts"
import { createOtherRequests, createRequestBoard } from "../session/shared-requests.ts"
import { defaultSubagentLimits } from "../session/subagent.ts"
import { createSharedLocks } from "../store/file-lock.ts"
import { createGrants } from "../store/grants.ts"
import type { Lease, Store } from "../store/store.ts"
import { createSecretMask } from "../tool/secrets.ts"
import { readFeatures } from "../tools/availability.ts"
import { createJobTable } from "../tools/bash/background-jobs.ts"
import { chooseSearch } from "../tools/web/choose-search.ts"
import { orAbort } from "../util/abort.ts"
import { TackleError } from "../util/errors.ts"
import { newId } from "../util/id.ts"
import { homeDirectory, realPath } from "../util/paths.ts"
import { createProcessJournal } from "../util/process-journal.ts"
import { identifyProcess } from "../util/process-table.ts"
import { commandVariables } from "./command-variables.ts"
import { guardedDataPaths } from "./data-directory.ts"
import { openDefinitions, withAgentRules } from "./definitions.ts"
import type { FindFiles } from "./find-files.ts"
import { defaultRetentionLimits, startHousekeeping } from "./housekeeping.ts"
import { createMcpAnswers, openMcp } from "./mcp.ts"
import { createModelChoice, openModels } from "./models.ts"
import { createOpenSessions } from "./open-sessions.ts"
import { openContents, openDatabase } from "./open-storage.ts"
import { locationOf, type TackleOptions } from "./options.ts"
import type { PluginWiring } from "./plugins.ts"
import {
  configuredLayers,
  createAgentAccess,
  createPlanFiles,
  createPolicies,
  createWorktreeGrants,
} from "./policies.ts"
import { readCommand } from "./prompt-command.ts"
import { createListeners, createRequests, refuseUnheard } from "./requests.ts"
import { openCommandSandbox } from "./sandbox.ts"
import { databaseSecrets, readSecrets, storageSecrets, storedSecrets } from "./secrets.ts"
import { createSessions } from "./sessions.ts"
import { createStandaloneCalls } from "./standalone-calls.ts"
import type { Tackle } from "./tackle.ts"
import { createUnavailableTools, onlyForManyTools, openRegistry } from "./tools.ts"

/** Loads the plugins, if any. Returns the options after the plugins have changed them. */
async function loadPlugins(
  options: TackleOptions,
  wiring: PluginWiring,
): Promise<{ plugins?: Plugins; options: TackleOptions }> {
  if (!options.plugins?.length) return { options }
  const { openPluginsOf } = await import("./plugins.ts")
  return openPluginsOf(options, wiring)
}

/** Creates the guard for tenant limits. The module is loaded on demand, because most engines have no tenant limits. */
async function loadTenantGuard(store: Store, limits: NonNullable<TackleOptions["tenants"]>) {
  const { createTenantGuard } = await import("../session/tenant-limits.ts")
  return createTenantGuard(store, limits)
}

/**
 * Opens an engine. The caller must close it. Until it is closed, the engine keeps the store open and catches errors
 * that escape from tools. Throws `UsageError` if an option is unknown or invalid or a directory does not exist, and
 * `StoreError` if the database cannot be used.
 */
export async function createTackle(options: TackleOptions): Promise<Tackle> {
  const { checkOptions, checkPermissionNames } = await import("./check-options.ts")
  checkOptions(options)
  return openEngine(options, (tools) => checkPermissionNames(options, tools))
}

/**
 * Opens an engine as `createTackle` does, without checking the options. The command checks its config instead. `onTools`
 * receives the ids of the tools. If it throws, the engine is not opened.
 */
export async function openEngine(
  checked: TackleOptions,
  onTools: (ids: readonly string[]) => void = () => {},
): Promise<Tackle> {
  const given = withAgentRules(checked)
  // Resources close in reverse order, with the engine or as soon as a later resource fails to open.
  await using opening = new AsyncDisposableStack()
  opening.defer(holdProcess())
  const location = locationOf(given)
  const { environment, directory, worktree, dataDirectory, data, onProblem } = location
  const root = realPath(worktree)

  // Journals of processes and files that must not outlive the engine.
  const processes = createProcessJournal(data.processes, onProblem)
  opening.defer(() => processes.clear())
  opening.defer(holdPrograms(processes.add))
  const temporaries = createTemporaryFileJournal(data.temporaries, onProblem)
  const placeholders = createPlaceholderJournal(data.placeholders, onProblem)

  // Plugins change the options, including the secrets, so they load before the store opens.
  const mask = given.mask ?? createSecretMask()
  const hide = mask.value
  const onSecrets = (secrets: Record<string, string>) => mask.add(storedSecrets(secrets))
  const credentials = createCredentials({ environment, authFile: data.auth, onSecrets })
  let openStore: { store: Store; close?(): Promise<void> } | undefined
  opening.defer(() => openStore?.close?.())
  const pluginsEnd = new AbortController()
  opening.defer(() => pluginsEnd.abort())
  const { plugins, options } = await loadPlugins(given, {
    directory,
    worktree,
    environment: commandVariables(given, environment),
    signal: pluginsEnd.signal,
    record: processes.add,
    store: () => openStore?.store,
    saveAuth: credentials.save,
    onProblem,
  })
  opening.defer(() => plugins?.host.close())
  const { defaultAgent = "build", limits = {} } = options
  mask.add(await readSecrets(options, { environment, credentials, mcpTokens: data.mcpTokens }))
  if (options.database) mask.add(databaseSecrets(options.database))
  if (options.contents) mask.add(storageSecrets(environment))
  const database = given.store ?? (await openDatabase({ database: options.database, file: data.database }))
  const store = maskStore(database, mask)
  openStore = { store, close: given.store ? undefined : () => database.close() }
  const unfinished = await settleKilled(store).catch((error: unknown) => {
    onProblem("the open calls of killed runs could not be closed", error)
    return []
  })

  const ended = new AbortController()
  opening.defer(() => ended.abort())

  // Services that do not depend on sessions.
  const variables = commandVariables(options, environment)
  const bus = createBus((error) => onProblem("an event subscriber threw an error", error), hide)
  if (plugins) bus.subscribe(plugins.sendEvent)
  const isWorker = options.isWorker && { isWorker: true }
  const holder = { id: newId("eng"), host: hostname(), ...identifyProcess(), ...isWorker }
  const leases = new Map<string, Lease>()
  const board = createRequestBoard({ store, holder, leases, onProblem })
  const otherRequests = createOtherRequests(store, (id) => id === holder.id)
  const questions = createQuestions((event) => bus.publish(event), board)
  const jobs = createJobTable()
  const models = openModels(options, credentials, plugins, location)
  const modelChoice = createModelChoice(models, options)
  const sandbox = openCommandSandbox(options, location, placeholders, onProblem)
  opening.defer(() => sandbox.close())
  const search = chooseSearch(environment, options.search)
  const experimental = options.experimental ?? {}
  const features = readFeatures({ environment, experimental, search: search.configured })
  const project = {
    worktree: root,
    trusted: options.trusted ?? false,
    environment: variables,
    record: processes.add,
  }
  const lsp = features.experimental.has("lsp_tool")
    ? (await import("../lsp/service.ts")).createLanguageService({ ...project, config: options.lsp })
    : undefined
  opening.defer(() => lsp?.close())
  const formatter = createFormatterService({ ...project, config: options.formatter ?? false })
  const retention = { ...defaultRetentionLimits, ...limits.retention }
  const contents = await openContents({
    contents: options.contents,
    store: database,
    directory: data.snapshots,
    retention,
    environment,
  })
  const definitions = await openDefinitions({ options, given, source: options.definitions, onProblem })
  const { agents, skills } = definitions

  // Open sessions, and the rules that apply to them.
  const closing = new AbortController()
  function assertOpen(): void {
    if (closing.signal.aborted) throw new EngineClosedError()
  }
  const opened = createOpenSessions({
    store,
    bus,
    assertOpen,
    open: (session) => openSession(session, engine),
  })
  const { mail } = store
  const relay =
    mail &&
    (await import("../session/stream-relay.ts")).createStreamRelay({
      mail,
      host: options.streamHost ?? "127.0.0.1",
      bus,
      holder,
      streaming: (id) => opened.find(id)?.streaming() ?? [],
      onProblem: (error) => onProblem("streamed text could not be sent", error),
    })
  opening.defer(() => relay?.close())
  const lineage = createLineage(store, (id) => opened.find(id)?.info())
  const grantBook = createGrants(store)
  const grants = createWorktreeGrants(grantBook, lineage, worktree)
  const permission = createPermission({
    home: homeDirectory(),
    guarded: [...(options.configDirectories ?? []), ...guardedDataPaths(dataDirectory, worktree)],
    publish: (event) => bus.publish(event),
    saveGrants: grants.save,
    dropGrants: grantBook.remove,
    board,
    decide: plugins?.decide,
    hide,
  })
  const listeners = createListeners(bus, permission, questions)
  refuseUnheard(bus, {
    answered: () => options.approvals ?? listeners.hearsRequests(),
    reply: permission.reply,
    onProblem,
  })
  const plans = features.experimental.has("plan_mode")
  const planFile = createPlanFiles(plans ? data.plans : undefined)
  const policies = createPolicies({
    configured: configuredLayers(options),
    agents,
    lineage,
    grants: grantBook,
    planFile,
    hasSandbox: sandbox.present,
  })
  const outside = { id: "", worktree }
  const access = createAgentAccess(agents, skills, (agent) => policies.of(outside, agent))
  const subagentLimits = { ...defaultSubagentLimits, ...limits.subagent }
  const unavailableTools = createUnavailableTools({
    agents,
    access,
    lineage,
    depth: subagentLimits.depth,
    plans,
    answered: () => options.questions ?? listeners.hearsQuestions(),
  })
  const subagents: SubagentServices = {
    limits: subagentLimits,
    agent: agents.subagentNamed,
    startable: (name) => access.subagents(name).map((agent) => agent.name),
    start({ parent, agent, model, title }) {
      const { directory, worktree, id: parentID, tenant } = parent
      const where = { directory, worktree, parentID, tenant }
      return opened.begin({ ...where, agent: agent.name, model, title })
    },
    find: opened.get,
    release: opened.release,
  }

  // Tools, including those of MCP servers.
  const toolListeners = new Set<() => void>()
  const mcp = await openMcp(options, {
    worktree: root,
    trusted: project.trusted,
    fingerprints: data.mcpFingerprints,
    tokens: data.mcpTokens,
    environment: variables,
    record: processes.add,
    onSecrets,
    async onChanged(tools) {
      const revoked = await grants.lapse(tools)
      if (revoked) onProblem("an approval was revoked", revoked)
    },
    onToolsChanged() {
      for (const listener of toolListeners) listener()
    },
    onProblem: (error) => onProblem("problem with an MCP server", error),
  })
  opening.defer(() => mcp?.close())
  const registry = await openRegistry(options, {
    directory,
    variables,
    programs: data.programs,
    record: processes.add,
    hasSandbox: sandbox.present,
    features,
    search: search.backend,
    access,
    skills,
    plugins,
    mcp,
    onProblem,
  })
  definitions.onChanged(registry.renew)
  onTools(registry.ids())
  for (const { file, message } of registry.problems())
    onProblem(file, new TackleError(message, { code: "definition.file", recoverable: true }))

  // Reads do not wait for housekeeping. Prompts wait for its first part, and `close` waits for all of it.
  const housekeeping = startHousekeeping({
    dataDirectory,
    retention,
    outputDays: limits.retentionDays,
    store,
    contents,
    processes,
    temporaries,
    placeholders,
    jobs,
    onProblem,
  })
  opening.defer(() => housekeeping.done())
  opening.defer(() => jobs.killAll())

  const { toolSearch } = options
  const engine: SessionEngine = {
    assertOpen,
    closing: closing.signal,
    ended: ended.signal,
    directory,
    worktree,
    defaultAgent,
    onProblem,
    store,
    bus,
    holder,
    leases,
    dispatch: options.dispatch,
    relay,
    otherRequests,
    cleared: housekeeping.cleared,
    permission,
    policies,
    registry,
    questions,
    jobs,
    lsp,
    formatter,
    plugins: plugins?.host,
    mask,
    outputLimits: limits.output,
    spillRoot: data.outputs,
    spillBytes: limits.spillBytes,
    searchPath: environment.PATH,
    sandbox: sandbox.of,
    scopeSandbox: sandbox.scope,
    ownDirectories(session, agent) {
      const family = [session, ...lineage.above(session)]
      const plan = family.map(planFile).find((file) => file !== undefined)
      const spills = family.map(({ id }) => `${data.outputs}/${id}`)
      const own = access.skills(agent.name).map((skill) => skill.directory)
      return [...spills, ...(plan === undefined ? [] : [dirname(plan)]), ...own]
    },
    planFile,
    onEscape: (tool, error) => onProblem(`uncaught error in the ${tool} tool`, error),
    toolBytes: toolSearch === false ? undefined : (toolSearch?.maxBytes ?? defaultToolBytes),
    fileCommits: {
      locks: createPathLocks(
        createSharedLocks(data.locks, (error) =>
          onProblem("files cannot be locked against changes by other processes", error),
        ),
      ),
      trackTemporary: temporaries.track,
    },
    lineage,
    subagents,
    unavailableTools,
    agent: agents.named,
    definitions,
    model: modelChoice.of,
    instructions: options.instructions ?? [],
    instructionsNear: options.instructionsNear,
    contents,
    watchChanges: (store) =>
      createTurnChanges({
        contents,
        worktree: root,
        leaveOut: realPath(dataDirectory),
        limits: defaultScanLimits,
        ...store,
      }),
    turns: new Map(),
    tenants: options.tenants && (await loadTenantGuard(store, options.tenants)),
    runSlots: options.runSlots,
    attach: options.attach,
    recorded: options.recorded,
    streamLimits: { ...defaultStreamLimits, ...limits.stream },
    retry: { ...defaultRetryLimits, ...limits.retry },
  }
  const calls = createStandaloneCalls(engine, async (callerID) => {
    await jobs.killOf([callerID])
    grantBook.forget(callerID)
  })
  opening.defer(async () => {
    closing.abort()
    await Promise.all([opened.abortAll(), calls.settled()])
  })

  for (const session of unfinished)
    await opened
      .local(session.id)
      .then((handle) => handle?.finishRestoring())
      .catch((error: unknown) => onProblem("an interrupted undo could not be finished", error))

  const mcpAnswers = createMcpAnswers(mcp, { signal: closing.signal, hide })
  const parts = opening.move()
  let closed: Promise<void> | undefined
  let finder: Promise<FindFiles> | undefined

  /**
   * Returns the reference to the model that the options select, for listing tools. If no model is selected by name, the
   * ids in the reference are empty and stand for any model.
   */
  function chosenModel(): ModelRef {
    return typeof options.model === "string" ? parseModelName(options.model) : { providerID: "", modelID: "" }
  }

  async function listTools(model: ModelRef, name = defaultAgent): Promise<ToolListing[]> {
    await definitions.follow()
    const agent = agents.named(name)
    return registry.list({
      agent: agent.name,
      mode: agent.mode,
      model,
      policy: policies.of(outside, agent),
      unavailable: { ...unavailableTools(agent), ...onlyForManyTools },
    })
  }

  const tackle: Tackle = {
    id: holder.id,
    directory,
    worktree,
    dataDirectory,
    sessions: createSessions(engine, {
      opened,
      jobs,
      models: modelChoice,
      kept: [data.outputs, data.plans, data.workspaces],
      describeWorkspace: contents.isShared
        ? async () => (await import("../session/workspace.ts")).describeWorkspace(worktree, environment)
        : undefined,
    }),
    agents: agents.all,
    store,
    on: listeners.on,
    subscribe(listener, { otherProcesses = false } = {}) {
      const ends = [bus.subscribe(listener), otherProcesses ? otherRequests.subscribe(listener) : () => {}]
      return () => {
        for (const end of ends) end()
      }
    },
    ...createRequests(engine),
    pendingRequests: (sessionID) => permission.pending(sessionID),
    async explain({ agent: name = defaultAgent, ...request }) {
      await definitions.follow()
      const agent = agents.named(name)
      await policies.load(outside)
      const policy = () => policies.of(outside, agent)
      const scope = {
        directory,
        worktree,
        policy,
        own: [],
        searchPath: environment.PATH,
        sandbox: sandbox.scope,
      }
      const tool = registry.idOf(request.permission)
      const named =
        tool === undefined
          ? request
          : {
              ...request,
              permission: tool,
              alias: registry.aliasOf(tool),
              confined: request.permission === "bash",
            }
      return hide(await permission.explain(named, scope))
    },
    async findFiles(query, choice) {
      finder ??= import("./find-files.ts").then(({ createFileFinder }) =>
        createFileFinder(directory, async (path) => {
          const { verdict } = await tackle.explain({ permission: "read", patterns: [path] })
          return verdict !== "deny"
        }),
      )
      return (await finder)(query, choice)
    },
    async send(sessionID, text, options) {
      const session = await tackle.sessions.get(sessionID)
      if (!session) return undefined
      const found = text.startsWith("/") ? await tackle.readCommand(text) : {}
      return session.send(text, { ...options, command: "call" in found ? found.call : undefined })
    },
    grants: async () => hide(await grants.list()),
    revoke: grants.revoke,
    models: () => models.list(),
    model: async (name) => (await modelChoice.named(name)).info,
    providers: () => models.providers(),
    signIns: () => plugins?.host.signIns() ?? [],
    credentials,
    commands: definitions.commands,
    async readCommand(text, { signal = closing.signal } = {}) {
      await definitions.follow()
      return readCommand(text, definitions.commands(), {
        servers: Object.keys(options.mcp ?? {}),
        list: (server) => mcpAnswers.mcpPrompts(signal, server),
        fill: (asked) => mcpAnswers.mcpPrompt({ ...asked, signal }),
      })
    },
    registry: {
      ids: registry.ids,
      get: (id) => registry.get(id)?.tool,
      async tools({ provider, agent } = {}) {
        const model = provider === undefined ? chosenModel() : { providerID: provider, modelID: "" }
        const listed = await listTools(model, agent)
        return listed.filter(({ offered }) => offered)
      },
    },
    tools({ agent, model, signal } = {}) {
      const listed = listTools(model === undefined ? chosenModel() : parseModelName(model), agent)
      return signal ? orAbort(listed, signal) : listed
    },
    ...mcpAnswers,
    onToolsChanged(listener) {
      toolListeners.add(listener)
      return () => toolListeners.delete(listener)
    },
    problems: () => registry.problems(),
    async project() {
      const [branch, state] = await Promise.all([branchOf(worktree), sandbox.state()])
      return { directory, worktree, branch, sandbox: state }
    },
    callTool: calls.call,
    caller: (caller = {}) => calls.caller(caller),
    close: () => {
      closed ??= parts.disposeAsync()
      return closed
    },
  }
  return tackle
}
