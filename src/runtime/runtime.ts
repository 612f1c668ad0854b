import { readFeatures } from "../builtin/availability.ts"
import { createJobTable } from "../builtin/command/job-table.ts"
import { chooseSearch } from "../builtin/web/search-backend.ts"
import { holdProcess } from "../call/containment.ts"
import { storedSecrets } from "../call/known-secrets.ts"
import { createBus } from "../event/bus.ts"
import { createFormatterService } from "../formatter/service.ts"
import { createCredentials } from "../model/credentials.ts"
import { createPermission } from "../permission/engine.ts"
import { EngineClosedError } from "../session/handle.ts"
import { createLineage } from "../session/lineage.ts"
import { createQuestions } from "../session/questions.ts"
import { settleKilled } from "../session/restore.ts"
import type { SessionServices } from "../session/services.ts"
import { openSession } from "../session/session.ts"
import { defaultSubagentLimits, type SubagentLimits } from "../session/subagent.ts"
import { createContentStore, defaultContentLimits } from "../snapshot/content-store.ts"
import { defaultScanLimits } from "../snapshot/scan.ts"
import { createTurnChanges } from "../snapshot/turn-changes.ts"
import { createGrantBook } from "../store/grant-book.ts"
import type { FileCommits } from "../tool/ledger.ts"
import { createPathLocks } from "../tool/path-locks.ts"
import { createSecretMask } from "../tool/secrets.ts"
import { createTemporaryBook } from "../tool/temporary-book.ts"
import { homeDirectory } from "../util/home.ts"
import { newId } from "../util/id.ts"
import { realPath } from "../util/paths.ts"
import { createProcessBook } from "../util/process-book.ts"
import { identifyProcess } from "../util/process-identity.ts"
import { openCommandSandbox } from "./command-sandbox.ts"
import { commandVariables } from "./command-variables.ts"
import { dataPlaces } from "./data-directory.ts"
import { createEngineStore } from "./engine-store.ts"
import { createWorktreeGrants } from "./grants.ts"
import { startHousekeeping } from "./housekeeping.ts"
import { createLacking } from "./lacking.ts"
import { openLanguages } from "./languages.ts"
import { createListening } from "./listening.ts"
import { openDefinitions } from "./live-definitions.ts"
import { createLoneCalls } from "./lone-calls.ts"
import { createLookups } from "./lookups.ts"
import { createMcpAnswers, openMcp } from "./mcp.ts"
import { createModelChoice } from "./model-choice.ts"
import { openModels } from "./models.ts"
import { openCaller } from "./open-caller.ts"
import { openPlugins } from "./open-plugins.ts"
import { createOpenSessions } from "./open-sessions.ts"
import type { TackleOptions } from "./options.ts"
import { createPersonsLedger } from "./persons-ledger.ts"
import { placeOf } from "./place.ts"
import { createPlanFiles } from "./plan-files.ts"
import { configuredLayers, createPolicies } from "./policies.ts"
import { readCommand } from "./prompt-command.ts"
import { createReach } from "./reach.ts"
import { defaultRetentionLimits } from "./retention.ts"
import { readSecrets } from "./secrets.ts"
import { sessionSettings } from "./session-settings.ts"
import { createSessions } from "./sessions.ts"
import { createSubagents } from "./subagents.ts"
import type { Tackle } from "./tackle.ts"
import { openRegistry } from "./tools.ts"

/** Opens an engine. Whoever opens one closes it: until then it holds the store and watches for escaped errors. */
export async function createTackle(given: TackleOptions): Promise<Tackle> {
  // What is begun here ends in reverse: at once where the rest cannot be opened, else when the engine is closed.
  await using opening = new AsyncDisposableStack()
  opening.defer(holdProcess())

  // Where it works, and what is written down of what it starts.
  const place = placeOf(given)
  const { environment, directory, worktree, dataDirectory, onFault } = place
  const places = dataPlaces(dataDirectory)
  const processes = createProcessBook(places.processes, onFault)
  opening.defer(() => processes.clear())
  const temporaries = createTemporaryBook(places.temporaries, onFault)

  // What is secret changes while the engine is open: tokens are renewed.
  const mask = given.mask ?? createSecretMask()
  const onSecrets = (secrets: Record<string, string>) => mask.add(storedSecrets(secrets))
  const credentials = createCredentials({ environment, authFile: places.auth, onSecrets })

  // Plugins change the options and with them what is secret, so that they come before the store is opened.
  const engineStore = createEngineStore(given.store, places.database)
  opening.defer(() => engineStore.close())
  const { plugins, options, ...loaded } = await openPlugins(given, {
    directory,
    worktree,
    environment: commandVariables(given, environment),
    record: processes.add,
    store: engineStore.current,
    saveAuth: credentials.save,
    onFault,
  })
  opening.defer(() => loaded.close())
  const { defaultAgent = "build" } = options
  const variables = commandVariables(options, environment)
  mask.add(await readSecrets(options, { environment, credentials, mcpTokens: places.mcpTokens }))
  const hide = mask.value
  const store = await engineStore.open(mask)
  await settleKilled(store).catch((error: unknown) =>
    onFault("what became of the calls of killed runs could not be stored", error),
  )

  // What stands by itself.
  const bus = createBus((error) => onFault("a subscriber threw", error), hide)
  if (plugins) bus.subscribe(plugins.tell)
  const jobs = createJobTable()
  const fileCommits: FileCommits = { locks: createPathLocks(), note: temporaries.note }
  const questions = createQuestions((event) => bus.publish(event))
  const definitions = await openDefinitions({
    options,
    given,
    source: options.definitions,
    onChanged: () => registry.renew(),
    onFault,
  })
  const { agents, skills } = definitions
  const models = openModels(options, credentials, plugins, place)
  const modelChoice = createModelChoice(models, options.model)
  const sandbox = openCommandSandbox(options, place)
  opening.defer(() => sandbox.close())
  const retention = { ...defaultRetentionLimits, ...options.limits?.retention }
  const contents = createContentStore(places.snapshots, {
    ...defaultContentLimits,
    days: retention.days,
    totalBytes: retention.megabytes * 1024 * 1024,
  })
  const search = chooseSearch(environment, options.search)
  const features = readFeatures({
    environment,
    experimental: options.experimental ?? {},
    search: search.configured,
  })
  const languages = openLanguages(options, {
    worktree,
    features,
    environment: variables,
    record: processes.add,
  })
  opening.defer(() => languages?.close())
  const formatter = createFormatterService({
    config: options.formatter ?? false,
    worktree: realPath(worktree),
    trusted: options.trusted ?? false,
    environment: variables,
    record: processes.add,
  })

  // The sessions under way, and what holds in them: who started whom, what was granted, what the rules say.
  const closing = new AbortController()
  function assertOpen(): void {
    if (closing.signal.aborted) throw new EngineClosedError()
  }
  const opened = createOpenSessions({
    store,
    bus,
    assertOpen,
    open: (session) => openSession(session, services),
  })
  const lineage = createLineage(store, (id) => opened.find(id)?.info())
  const grantBook = createGrantBook(store)
  const grants = createWorktreeGrants(grantBook, lineage, worktree)
  const permission = createPermission({
    home: homeDirectory(),
    guarded: options.configDirectories ?? [],
    publish: (event) => bus.publish(event),
    saveGrants: grants.save,
    dropGrants: grantBook.remove,
    ...(plugins === undefined ? {} : { decide: plugins.decide }),
    hide,
  })
  const listening = createListening(bus, permission, questions)
  const planFile = createPlanFiles(features.experimental.has("plan_mode") ? places.plans : undefined)
  const policies = createPolicies({
    configured: configuredLayers(options),
    agents,
    lineage,
    grants: grantBook,
    planFile,
    hasSandbox: sandbox.present,
  })
  const subagentLimits: SubagentLimits = { ...defaultSubagentLimits, ...options.limits?.subagent }
  const reach = createReach(agents, skills, (agent) => policies.of({ id: "", worktree }, agent))
  const lackingFor = createLacking({
    agents,
    reach,
    lineage,
    depth: subagentLimits.depth,
    plans: features.experimental.has("plan_mode"),
    answered: () => options.questions ?? listening.hearsQuestions(),
  })

  // The tools.
  const otherTools = new Set<() => void>()
  const mcp = await openMcp(options, {
    worktree: realPath(worktree),
    trusted: options.trusted ?? false,
    pins: places.mcpPins,
    tokens: places.mcpTokens,
    onSecrets,
    onChanged: async (tools) => {
      const lapsed = await grants.lapse(tools)
      if (lapsed) onFault("an approval was taken back", lapsed)
    },
    onToolsChanged: () => {
      for (const listener of otherTools) listener()
    },
    environment: variables,
    record: processes.add,
    onProblem: (error) => onFault("tools are missing", error),
  })
  opening.defer(() => mcp?.close())
  const registry = await openRegistry(options, {
    directory,
    variables,
    programs: places.programs,
    record: processes.add,
    hasSandbox: sandbox.present,
    features,
    search: search.backend,
    reach,
    skills,
    plugins,
    mcp,
    onFault,
  })

  // Who only looks does not wait for it; prompts wait for a part of it, and `close` does.
  const housekeeping = startHousekeeping({
    dataDirectory,
    retention,
    limits: options.limits,
    store,
    contents,
    processes,
    temporaries,
    jobs,
    onFault,
  })
  opening.defer(() => housekeeping.done())
  opening.defer(() => jobs.killAll())

  // What sessions are built on, and a part of it calls without one.
  const searchPath = environment.PATH === undefined ? {} : { searchPath: environment.PATH }
  const services: SessionServices = {
    ...sessionSettings(options),
    assertOpen,
    store,
    bus,
    holder: { id: newId("eng"), ...identifyProcess() },
    cleared: housekeeping.cleared,
    registry,
    permission,
    jobs,
    fileCommits,
    ...(languages === undefined ? {} : { lsp: languages }),
    ...(formatter === undefined ? {} : { formatter }),
    sandbox: sandbox.of,
    policy: policies.of,
    loadPolicy: policies.load,
    lineage,
    subagents: createSubagents({ limits: subagentLimits, agents, reach, opened }),
    questions,
    lacking: lackingFor,
    planFile,
    skillDirectories: (agent) => reach.skillDirectories(agent.name),
    agent: agents.named,
    definitions,
    model: modelChoice.of,
    contents,
    watchChanges: (save) =>
      createTurnChanges({
        contents,
        worktree: realPath(worktree),
        leaveOut: realPath(dataDirectory),
        limits: defaultScanLimits,
        save,
      }),
    turns: new Map(),
    spillRoot: places.outputs,
    onEscape: (tool, error) => onFault(`an error escaped the ${tool} tool`, error),
    ...searchPath,
    mask,
    ...(plugins === undefined ? {} : { plugins: plugins.host }),
  }
  const sessions = createSessions({
    onFault,
    store,
    directory,
    worktree,
    holder: services.holder,
    kept: [places.outputs, places.plans],
    endJobs: (sessionIDs) => jobs.killOf(sessionIDs),
    defaultAgent,
    checkModel: async (agent, model) => modelChoice.check(agents.named(agent), model),
    opened,
  })
  const calls = createLoneCalls({
    directory,
    worktree,
    defaultAgent,
    signal: closing.signal,
    policies,
    lacking: lackingFor,
    hide,
    services,
  })
  opening.defer(async () => {
    closing.abort()
    await Promise.all([opened.abortAll(), calls.settled()])
  })

  const lookups = createLookups({
    place,
    searchPath,
    defaultAgent,
    model: options.model,
    definitions,
    policies,
    permission,
    registry,
    lacking: lackingFor,
    hide,
  })
  const mcpAnswers = createMcpAnswers(mcp, { signal: closing.signal, hide })
  const parts = opening.move()
  let ended: Promise<void> | undefined
  return {
    directory,
    worktree,
    dataDirectory,
    sessions,
    agents: agents.all,
    store,
    on: listening.on,
    subscribe: (listener) => bus.subscribe(listener),
    reply: (requestID, reply, source = "person") => permission.reply(requestID, reply, source),
    pendingRequests: (sessionID) => permission.pending(sessionID),
    grants: async () => hide(await grants.list()),
    revoke: grants.revoke,
    questions: { reply: questions.reply, reject: questions.reject, pending: questions.pending },
    models: () => models.list(),
    signIns: () => plugins?.host.signIns() ?? [],
    credentials,
    commands: definitions.commands,
    async readCommand(text, { signal = closing.signal } = {}) {
      await definitions.follow()
      return readCommand(text, definitions.commands(), {
        servers: Object.keys(options.mcp ?? {}),
        list: () => mcpAnswers.mcpPrompts(signal),
        fill: (asked) => mcpAnswers.mcpPrompt({ ...asked, signal }),
      })
    },
    ...lookups,
    ...mcpAnswers,
    onToolsChanged(listener) {
      otherTools.add(listener)
      return () => otherTools.delete(listener)
    },
    problems: () => registry.problems(),
    callTool: (call) => calls.run(call, { id: newId("ses"), files: createPersonsLedger(fileCommits) }),
    caller: (caller = {}) => openCaller({ calls, defaultAgent, jobs, grants: grantBook, services }, caller),
    close: () => {
      ended ??= parts.disposeAsync()
      return ended
    },
  }
}
