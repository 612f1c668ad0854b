import { readFileSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { type Agent, mergeAgents } from "../agent/agent.ts"
import { builtinAgents } from "../agent/builtin.ts"
import { readFeatures } from "../builtin/availability.ts"
import { createJobTable } from "../builtin/command/job-table.ts"
import type { BuiltinOptions } from "../builtin/index.ts"
import { chooseSearch } from "../builtin/web/search-backend.ts"
import { type Call, type CallHost, newTurn } from "../call/call.ts"
import { contain, holdProcess } from "../call/containment.ts"
import { knownSecrets } from "../call/known-secrets.ts"
import { createSandboxFor } from "../call/sandbox.ts"
import { runCalls } from "../call/schedule.ts"
import { settleUnstarted } from "../call/settle.ts"
import { findWorktree } from "../config/locate.ts"
import { createBus } from "../event/bus.ts"
import type { EventOf, EventType } from "../event/events.ts"
import type { ProgramHost } from "../external-tool/program.ts"
import { createFormatterService } from "../formatter/service.ts"
import { createLanguageService } from "../lsp/service.ts"
import { McpToolChangedError } from "../mcp/errors.ts"
import type { McpPrompt, McpPromptMessage } from "../mcp/prompts.ts"
import { createCredentials } from "../model/credentials.ts"
import { type LanguageModel, type Model, parseModelName } from "../model/model.ts"
import { createModels } from "../model/providers.ts"
import { defaultRetryLimits } from "../model/retry.ts"
import { defaultStreamLimits } from "../model/stream.ts"
import { openToolMemory } from "../model/tool-memory.ts"
import { defaultRules } from "../permission/defaults.ts"
import { createPermission, type Scope } from "../permission/engine.ts"
import { judge, type Layer, type Policy, withFixedCeiling } from "../permission/policy.ts"
import { rulesFromObject } from "../permission/rules.ts"
import { openSandbox } from "../sandbox/wrap.ts"
import type { ModelRef } from "../schema/message.ts"
import type { Grant, PermissionReply, PermissionRequest, Ruleset } from "../schema/permission.ts"
import type { QuestionRequest } from "../schema/question.ts"
import type { Session } from "../schema/session.ts"
import { listCommands } from "../session/command.ts"
import { defaultToolBytes } from "../session/deferred-tools.ts"
import { EngineClosedError, type SessionHandle } from "../session/handle.ts"
import { isHeld } from "../session/lease.ts"
import { createLineage } from "../session/lineage.ts"
import { maskStore } from "../session/masked-store.ts"
import { createQuestions } from "../session/questions.ts"
import { settleKilled } from "../session/restore.ts"
import type { SessionServices } from "../session/services.ts"
import { openSession } from "../session/session.ts"
import { defaultSubagentLimits, type SubagentLimits } from "../session/subagent.ts"
import { loadSkills } from "../skill/load-skills.ts"
import type { Skill } from "../skill/skill.ts"
import { createContentStore, defaultContentLimits } from "../snapshot/content-store.ts"
import { defaultScanLimits } from "../snapshot/scan.ts"
import { createTurnChanges } from "../snapshot/turn-changes.ts"
import { createGrantBook } from "../store/grant-book.ts"
import type { Store } from "../store/store.ts"
import type { FileLedger, FileStamp, SandboxCapability } from "../tool/context.ts"
import { createFileLedger, stampBytes } from "../tool/ledger.ts"
import { createPathLocks, type PathLocks } from "../tool/path-locks.ts"
import { createSecretMask } from "../tool/secrets.ts"
import { abortedError, orAbort } from "../util/abort.ts"
import { errorMessage, UsageError } from "../util/errors.ts"
import { homeDirectory } from "../util/home.ts"
import { newId } from "../util/id.ts"
import { realPath } from "../util/paths.ts"
import { createProcessBook } from "../util/process-book.ts"
import { identifyProcess } from "../util/process-identity.ts"
import {
  type Caller,
  type CallerCall,
  type CallerOptions,
  chosenOf,
  createCaller,
  createTodoList,
  type Standing,
} from "./caller.ts"
import type { TackleOptions } from "./options.ts"
import { readCommand } from "./prompt-command.ts"
import { cleanUp, defaultRetentionLimits, programFolder, spillFolder } from "./retention.ts"
import { createSessions } from "./sessions.ts"
import type { AskedQuestion, AskedRequest, Tackle } from "./tackle.ts"
import { commandOptions, commandVariables, openMcp, openRegistry, programVariables } from "./tools.ts"

/** Opens an engine. Whoever opens one closes it: until then it holds the store and watches for escaped errors. */
export async function createTackle(options: TackleOptions): Promise<Tackle> {
  const release = holdProcess()
  // What was begun is ended again where the rest cannot be opened.
  const begun = new AsyncDisposableStack()
  begun.defer(release)
  try {
    const tackle = await wire(options, begun, release)
    begun.move()
    return tackle
  } catch (error) {
    await begun.disposeAsync()
    throw error
  }
}

/** The only wiring: every part of the engine is made here and handed what it needs. */
async function wire(given: TackleOptions, begun: AsyncDisposableStack, release: () => void): Promise<Tackle> {
  const environment = given.environment ?? process.env
  const directory = resolve(given.directory)
  const worktree = resolve(given.worktree ?? findWorktree(directory))
  const dataDirectory = resolve(given.dataDirectory ?? defaultDataDirectory(environment))
  const onFault =
    given.onFault ?? ((message, error) => console.error(`tackle: ${message}: ${errorMessage(error)}`))
  const closing = new AbortController()
  const processes = createProcessBook(join(dataDirectory, "processes"), onFault)
  /** Fires when plugins have heard of everything: their commands may go on until then. */
  const pluginsEnded = new AbortController()
  begun.defer(() => pluginsEnded.abort())
  let opened: Store | undefined
  const { plugins, options } = given.plugins?.length
    ? await (await import("./plugins.ts")).openPluginsOf(given, {
        directory,
        worktree,
        environment: commandVariables(given, environment),
        signal: pluginsEnded.signal,
        record: processes.add,
        store: () => opened,
        onFault,
      })
    : { plugins: undefined, options: given }
  begun.defer(() => plugins?.host.close())

  const credentials = createCredentials({ environment, authFile: join(dataDirectory, "auth.json") })
  const { providers, secrets } = options
  const mcpTokens = join(dataDirectory, "mcp-auth.json")
  const signedIn = options.mcp
    ? (await import("../mcp/oauth/token-book.ts")).openTokenBook(mcpTokens).secrets()
    : {}
  const stored = { ...(await credentials.stored()), ...signedIn }
  const mask = createSecretMask(
    knownSecrets({ environment, providers, secrets, search: options.search, stored }),
  )
  const hide = <T>(value: T): T => mask?.value(value) ?? value

  const bus = createBus((error) => onFault("a subscriber threw", error), hide)
  const jobs = createJobTable()
  const agents = mergeAgents(builtinAgents(), options.agents ?? {}, {
    own: options.agentRules,
    project: options.projectAgentRules,
    environment: options.environmentAgentRules,
  })
  const models = createModels({
    config: options.providers ?? {},
    credentials,
    environment,
    toolMemory: openToolMemory(dataDirectory),
    ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
  })
  const sandbox = openSandbox({
    mode: options.sandbox ?? "auto",
    platform: process.platform,
    architecture: process.arch,
    searchPath: environment.PATH ?? "",
    worktree,
    passEnvironment: options.passEnvironment ?? [],
  })
  const sandboxFor = createSandboxFor({
    sandbox,
    home: homeDirectory(),
    temporary: [...new Set(["/tmp", environment.TMPDIR || tmpdir()])],
    guarded: [dataDirectory, ...(options.configFiles ?? [])],
    secret: [
      "auth.json",
      "mcp-auth.json",
      "tackle.db",
      "tackle.db-wal",
      "tackle.db-shm",
      "log",
      "snapshot",
    ].map((name) => join(dataDirectory, name)),
  })
  const retention = { ...defaultRetentionLimits, ...options.limits?.retention }
  const contents = createContentStore(join(dataDirectory, "snapshot"), {
    ...defaultContentLimits,
    days: retention.days,
    totalBytes: retention.megabytes * 1024 * 1024,
  })
  const planRoot = join(dataDirectory, "plan")
  const search = chooseSearch(environment, options.search)
  const features = readFeatures({
    environment,
    experimental: options.experimental ?? {},
    search: search.configured,
  })
  const languages = features.experimental.has("lsp_tool")
    ? createLanguageService({
        worktree: realPath(worktree),
        trusted: options.trusted ?? false,
        environment: commandVariables(options, environment),
        ...(options.lsp === undefined ? {} : { config: options.lsp }),
      })
    : undefined
  const formatter = createFormatterService({
    config: options.formatter ?? false,
    worktree: realPath(worktree),
    trusted: options.trusted ?? false,
    environment: commandVariables(options, environment),
  })
  const { skills } = await loadSkills(options.skillFiles ?? [])
  const mcp = await openMcp(options, {
    worktree: realPath(worktree),
    trusted: options.trusted ?? false,
    pins: join(dataDirectory, "mcp-tools.json"),
    tokens: mcpTokens,
    onChanged: lapse,
    environment: commandVariables(options, environment),
    record: processes.add,
    onProblem: (error) => onFault("tools are missing", error),
  })
  const programs: ProgramHost = {
    directory,
    copies: join(dataDirectory, programFolder),
    environment: programVariables(commandVariables(options, environment)),
    record: processes.add,
  }
  const surroundings: BuiltinOptions = {
    bash: {
      ...commandOptions(options, environment, plugins),
      sandboxed: sandbox.present,
      record: processes.add,
    },
    task: { subagents: subagentsOf },
    skills: { offered: skillsOf, find: (name) => skills.get(name) },
    features,
    search: search.backend,
  }
  const registry = await contain(
    () => openRegistry(options, mcp, surroundings, programs, plugins),
    (error) => onFault("an error escaped the file of a tool", error),
  )
  // The last thing that can fail, so that nothing is left open.
  const unmasked = options.store ?? (await openDefaultStore(dataDirectory))
  const store = mask ? maskStore(unmasked, mask) : unmasked
  await settleKilled(store).catch((error: unknown) =>
    onFault("what became of the calls of killed runs could not be stored", error),
  )
  opened = store
  // Who only looks does not wait for it, prompts and `close` do.
  const orphansEnded = processes
    .endOrphans()
    .catch((error: unknown) => onFault("what killed runs left could not be looked for", error))
  // Nor for this, which has something to do once a day.
  const cleanedUp = cleanUp({
    dataDirectory,
    limits: retention,
    contents,
    inUse: async (id) => (await isHeld(store, id)) || jobs.runsFor(id) || (await processes.isAtWork(id)),
    ...(options.limits?.retentionDays === undefined ? {} : { outputDays: options.limits.retentionDays }),
  }).catch((error: unknown) => onFault("old files could not be removed", error))
  const handles = new Map<string, SessionHandle>()
  /** Calls without a session that are under way. */
  const calls = new Set<Promise<unknown>>()

  if (plugins) bus.subscribe(plugins.tell)
  const questions = createQuestions((event) => bus.publish(event))
  /** Those who listen to questions, one entry each. */
  const answerers = new Set<object>()
  const lineage = createLineage(store, (id) => handles.get(id)?.info())
  const grants = createGrantBook(store)
  const permission = createPermission({
    home: homeDirectory(),
    publish: (event) => bus.publish(event),
    saveGrants: (added) => grants.add(added.map(forFamily)),
    dropGrants: (ids) => grants.remove(ids),
    ...(plugins === undefined ? {} : { decide: plugins.decide }),
    hide,
  })
  const subagentLimits: SubagentLimits = { ...defaultSubagentLimits, ...options.limits?.subagent }

  /** What was allowed of tools as they were is asked for again. */
  async function lapse(ids: readonly string[]): Promise<void> {
    const granted = (await grants.list(worktree)).filter(({ permission: id }) => ids.includes(id))
    if (granted.length === 0) return
    await grants.remove(granted.map(({ id }) => id))
    const tools = [...new Set(granted.map(({ permission: id }) => id))].join(", ")
    onFault("an approval was taken back", new McpToolChangedError(tools))
  }

  /** What a person allows "in this session" at a subagent's question holds for all that works on their request. */
  function forFamily(grant: Grant): Grant {
    return grant.sessionID === undefined ? grant : { ...grant, sessionID: lineage.rootOf(grant.sessionID) }
  }

  /** A subagent is bound by all that binds the session which started it. */
  function policyOf(session: Pick<Session, "id" | "worktree" | "parentID">, agent: Agent): Policy {
    const [parent] = lineage.above(session)
    const own = ownPolicy({ id: lineage.rootOf(session.id), worktree: session.worktree }, agent)
    const bounded = parent ? { ...own, bound: policyOf(parent, agentNamed(parent.agent)) } : own
    return agent.tools ? withFixedCeiling(bounded, agent.tools) : bounded
  }

  function ownPolicy(session: { id: string; worktree: string }, agent: Agent): Policy {
    const plan = agent.plans ? planRules(planFileOf(session)) : []
    const configured: readonly Layer[] = options.layers ?? [
      { name: "user", rules: rulesFromObject(options.permission ?? {}, { file: "createTackle" }) },
    ]
    const flags = configured.filter((layer) => layer.name === "flags")
    const layers: Layer[] = [
      { name: "defaults", rules: [...defaultRules(), ...plan] },
      ...configured.filter((layer) => layer.name !== "flags"),
      { name: "agent", rules: agent.permission },
      { name: "agent", rules: agent.projectPermission ?? [], keepsDenies: true },
      { name: "agent", rules: agent.environmentPermission ?? [] },
      ...flags,
      { name: "grants", rules: grants.rules(session) },
    ]
    const bans = agent.sandbox && !sandbox.present ? withoutSandbox : []
    const ceiling = [...(agent.ceiling ?? []), ...bans, ...plan]
    return ceiling.length > 0 ? { layers, ceiling } : { layers }
  }

  /** Beside the sessions' outputs and not in the project, of which planning changes nothing. */
  function planFileOf({ id, parentID }: { id: string; parentID?: string }): string | undefined {
    const planned = features.experimental.has("plan_mode") && parentID === undefined
    return planned ? join(realPath(planRoot), id, "plan.md") : undefined
  }

  /** Where there is none at all, an agent that needs one has no commands but those its configuration lifts the ban on. */
  function sandboxOf(agent: Agent, scope: Scope): SandboxCapability {
    return sandboxFor(scope, { required: agent.sandbox === "require" && sandbox.present })
  }

  function scopeOf(policy: Scope["policy"], own: readonly string[]): Scope {
    const searchPath = environment.PATH === undefined ? {} : { searchPath: environment.PATH }
    return { directory, worktree, policy, own, ...searchPath }
  }

  function agentNamed(name: string): Agent {
    const agent = agents.get(name)
    if (agent) return agent
    throw new UsageError(`There is no agent "${name}". There are: ${[...agents.keys()].join(", ")}.`)
  }

  function subagentNamed(name: string): Agent {
    const agent = agents.get(name)
    if (agent && agent.mode !== "primary") return agent
    const names = [...agents.values()].flatMap(({ mode, name }) => (mode === "primary" ? [] : [name]))
    throw new UsageError(`There is no subagent "${name}". There are: ${names.sort().join(", ") || "none"}.`)
  }

  /** Those that the rules let the agent start. */
  function subagentsOf(name: string): Agent[] {
    const policy = policyOf({ id: "", worktree }, agentNamed(name))
    const started = [...agents.values()].filter(({ mode }) => mode !== "primary")
    return started
      .filter((agent) => judge(policy, "task", [agent.name]).action !== "deny")
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** Those that the rules let the agent load. */
  function skillsOf(name: string): Skill[] {
    const policy = policyOf({ id: "", worktree }, agentNamed(name))
    return [...skills.values()].filter((skill) => judge(policy, "skill", [skill.name]).action !== "deny")
  }

  /** Tools that cannot work for the agent where the session is. */
  function lackingIn(agent: Agent, session?: Session): Record<string, string> {
    const { depth } = subagentLimits
    const reasons: Record<string, string> = {}
    if (session && lineage.above(session).length >= depth)
      reasons.task = `subagents may go no deeper than ${depth} (subagent.depth)`
    if (skills.size === 0 || skillsOf(agent.name).length === 0)
      reasons.skill = "there are no skills for this agent"
    const silent = (options.questions ?? answerers.size > 0) ? undefined : "nobody is there to answer"
    if (silent !== undefined) reasons.question = silent
    if (!features.experimental.has("plan_mode")) return reasons
    const fixed =
      silent ?? (session?.parentID === undefined ? undefined : "a subagent does not change its mode")
    const enter = fixed ?? (agent.plans ? "the session is in plan mode" : missing("plan"))
    const exit = fixed ?? (agent.plans ? missing("build") : "the session is not in plan mode")
    if (enter !== undefined) reasons.plan_enter = enter
    if (exit !== undefined) reasons.plan_exit = exit
    return reasons
  }

  function missing(name: string): string | undefined {
    return agents.has(name) ? undefined : `the agent ${name} is switched off`
  }

  async function modelNamed(choice: TackleOptions["model"]): Promise<Model> {
    if (choice === undefined) {
      throw new UsageError(
        'No model is chosen. Name one: --model provider/model, or "model" in the configuration.',
      )
    }
    if (typeof choice === "string") return models.get(parseModelName(choice))
    return "doStream" in choice ? modelOf(choice) : choice
  }

  function modelFor(session: { model?: ModelRef }, agent: Agent): Promise<Model> {
    const chosen = session.model ?? agent.model
    if (!chosen) return modelNamed(options.model)
    const given = options.model
    if (typeof given === "object" && isModel(given, chosen)) return modelNamed(given)
    return models.get(chosen)
  }

  const fileLocks = createPathLocks()
  function assertOpen(): void {
    if (closing.signal.aborted) throw new EngineClosedError()
  }

  const services: SessionServices = {
    assertOpen,
    store,
    bus,
    holder: { id: newId("eng"), ...identifyProcess() },
    cleared: orphansEnded,
    registry,
    ...(options.toolSearch === false ? {} : { toolBytes: options.toolSearch?.maxBytes ?? defaultToolBytes }),
    permission,
    jobs,
    fileLocks,
    ...(languages === undefined ? {} : { lsp: languages }),
    ...(formatter === undefined ? {} : { formatter }),
    sandbox: sandboxOf,
    policy: policyOf,
    async loadPolicy(session) {
      await lineage.load(session)
      await grants.load({ id: lineage.rootOf(session.id), worktree: session.worktree })
    },
    lineage,
    subagents: {
      limits: subagentLimits,
      agent: subagentNamed,
      startable: (name) => subagentsOf(name).map((agent) => agent.name),
      start: ({ parent, agent, model, title }) =>
        begin({
          directory: parent.directory,
          worktree: parent.worktree,
          parentID: parent.id,
          agent: agent.name,
          model,
          title,
        }),
      find: (id) => sessions.get(id),
    },
    questions,
    lacking: lackingIn,
    planFile: planFileOf,
    skillDirectories: (agent) =>
      skills.size === 0 ? [] : skillsOf(agent.name).map(({ directory }) => directory),
    agent: agentNamed,
    model: modelFor,
    instructions: options.instructions ?? [],
    ...(options.instructionsNear ? { instructionsNear: options.instructionsNear } : {}),
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
    spillRoot: join(dataDirectory, spillFolder),
    streamLimits: { ...defaultStreamLimits, ...options.limits?.stream },
    retry: { ...defaultRetryLimits, ...options.limits?.retry },
    onEscape: (tool, error) => onFault(`an error escaped the ${tool} tool`, error),
    ...(environment.PATH === undefined ? {} : { searchPath: environment.PATH }),
    ...(options.recorded === undefined ? {} : { recorded: options.recorded }),
    ...(options.limits?.spillBytes === undefined ? {} : { spillBytes: options.limits.spillBytes }),
    ...(mask === undefined ? {} : { mask }),
    ...(plugins === undefined ? {} : { plugins: plugins.host }),
    ...(options.limits?.output === undefined ? {} : { outputLimits: options.limits.output }),
  }

  /** One handle a session, so that two callers cannot run it at once. */
  function handleOf(session: Session): SessionHandle {
    const handle = handles.get(session.id) ?? openSession(session, services)
    handles.set(session.id, handle)
    return handle
  }

  async function begin(fields: Omit<Session, "id" | "time">): Promise<SessionHandle> {
    assertOpen()
    const now = Date.now()
    const session: Session = { id: newId("ses"), ...fields, time: { created: now, updated: now } }
    await store.commit([{ kind: "session", session }])
    return made(session)
  }

  /** For a session that was just stored. */
  function made(session: Session): SessionHandle {
    bus.publish({ type: "session.created", sessionID: session.id, session })
    return handleOf(session)
  }

  /** True for a session and all that its calls started. */
  function isOfFamily(handle: SessionHandle, id: string): boolean {
    if (handle.id === id) return true
    const parent = handles.get(handle.info().parentID ?? "")
    return parent ? isOfFamily(parent, id) : handle.info().parentID === id
  }

  const sessions = createSessions({
    onFault,
    store,
    directory,
    worktree,
    holder: services.holder,
    kept: [services.spillRoot, planRoot],
    endJobs: (sessionIDs) => jobs.killOf(sessionIDs),
    defaultAgent: options.defaultAgent ?? "build",
    async checkModel(agent, model) {
      const chosen = agentNamed(agent)
      const named = model !== undefined || chosen.model !== undefined || options.model !== undefined
      if (named) await (await (model === undefined ? modelFor({}, chosen) : modelNamed(model))).language()
    },
    begin,
    made,
    handleOf,
    family: (id) => [...handles.values()].filter((handle) => isOfFamily(handle, id)),
    forget: (id) => handles.delete(id),
  })

  function listen(type: "permission.asked", listener: (request: AskedRequest) => void): () => void
  function listen(type: "question.asked", listener: (request: AskedQuestion) => void): () => void
  function listen<T extends EventType>(type: T, listener: (event: EventOf<T>) => void): () => void
  function listen(type: EventType, listener: (event: never) => void): () => void {
    const call = listener as (event: unknown) => void
    if (type === "permission.asked") return bus.on(type, ({ request }) => call(answerable(request)))
    if (type !== "question.asked") return bus.on(type, call)
    const answerer = {}
    answerers.add(answerer)
    const unsubscribe = bus.on(type, ({ request }) => call(answerableQuestion(request)))
    return () => {
      unsubscribe()
      answerers.delete(answerer)
    }
  }

  function answerableQuestion(request: QuestionRequest): AskedQuestion {
    return {
      ...request,
      reply: (answers) => questions.reply(request.id, answers),
      reject: () => questions.reject(request.id),
    }
  }

  function answerable(request: PermissionRequest): AskedRequest {
    const reply: AskedRequest["reply"] = (answer) =>
      permission.reply(request.id, typeof answer === "string" ? replyOf(answer) : answer, "person")
    return { ...request, reply }
  }

  /** Ends with the engine, like the runs of the sessions. */
  async function callTool(
    { signal, ...rest }: Parameters<Tackle["callTool"]>[0] & Partial<CallerCall>,
    standing = passingBy(),
  ) {
    assertOpen()
    const signals = signal ? [closing.signal, signal] : [closing.signal]
    const call = runAlone({ ...rest, signal: AbortSignal.any(signals) }, standing)
    calls.add(call)
    const forget = () => calls.delete(call)
    call.then(forget, forget)
    return call
  }

  /** Whoever makes one call by hand. */
  function passingBy(): Standing {
    return { id: newId("ses"), files: personsLedger(fileLocks) }
  }

  function lackingFor(agent: Agent, { questions }: Standing): Record<string, string> {
    const lacking = { ...lackingIn(agent), ...onlyInSessions }
    return questions === false ? { ...lacking, question: "nobody is there to answer" } : lacking
  }

  function openCaller({
    agent: name = options.defaultAgent ?? "build",
    tools: chosen,
    questions: asking = true,
  }: CallerOptions = {}): Caller {
    assertOpen()
    const agent = agentNamed(name)
    const standing: Standing = {
      id: newId("ses"),
      files: createFileLedger(fileLocks),
      todo: createTodoList(),
      questions: asking,
      ...(chosen === undefined ? {} : { chosen: new Set(chosen) }),
    }
    const policy = () => policyOf({ id: standing.id, worktree }, agent)
    return createCaller({
      standing,
      list: () =>
        registry.list({ agent: agent.name, policy: policy(), lacking: lackingFor(agent, standing) }),
      call: (call) => callTool({ ...call, agent: agent.name }, standing),
      async forget() {
        await jobs.killOf([standing.id])
        grants.forget(standing.id)
      },
    })
  }

  async function runAlone(
    {
      tool,
      input,
      agent: name = options.defaultAgent ?? "build",
      signal,
      messageID = newId("msg"),
      onProgress = () => {},
    }: Parameters<Tackle["callTool"]>[0] & Partial<CallerCall> & { signal: AbortSignal },
    standing: Standing,
  ) {
    const agent = agentNamed(name)
    const session = { id: standing.id, worktree }
    await grants.load(session)
    const policy = () => policyOf(session, agent)
    const spillDirectory = join(services.spillRoot, session.id)
    const lacking = lackingFor(agent, standing)
    const toolScope = {
      agent: agent.name,
      policy: policy(),
      lacking,
    }
    const question: CallHost["question"] = (asked, caller, stop) =>
      questions.ask({ sessionID: session.id, ...asked, tool: caller }, stop)
    const call: Call = { callID: newId("prt"), tool, raw: input }
    const turn = newTurn()
    const registered = await orAbort(registry.tools(toolScope), signal).catch((error: unknown) => {
      if (signal.aborted) return undefined
      throw error
    })
    if (!registered) return { ...settleUnstarted(call, abortedError(signal), turn), turn }
    const offered = chosenOf(standing, registered)
    const scope = scopeOf(policy, [spillDirectory, ...services.skillDirectories(agent)])
    const [outcome] = await runCalls([call], {
      sessionID: session.id,
      messageID,
      agent: agent.name,
      directory,
      worktree,
      offered: new Map(offered.map((entry) => [entry.id, entry])),
      permission,
      withheld: (id) => registry.withheld(id, toolScope),
      scope,
      files: standing.files,
      ...(standing.todo === undefined ? {} : { todo: standing.todo }),
      jobs,
      sandbox: sandboxOf(agent, scope),
      ...(languages === undefined ? {} : { lsp: languages }),
      ...(formatter === undefined ? {} : { formatter }),
      ...(lacking.question === undefined ? { question } : {}),
      spillDirectory,
      turn,
      signal,
      async onState(callID, state) {
        if (callID === call.callID && state.status === "running") onProgress(state)
      },
      onEscape: services.onEscape,
      ...(services.spillBytes === undefined ? {} : { spillBytes: services.spillBytes }),
      ...(mask === undefined ? {} : { mask }),
      ...(plugins === undefined ? {} : { plugins: plugins.host }),
      ...(services.outputLimits === undefined ? {} : { limits: services.outputLimits }),
    })
    if (!outcome) throw new Error("runCalls gave no outcome for its one call")
    return { ...hide(outcome), turn: { ...turn, refused: hide(turn.refused) } }
  }

  const commands = () => listCommands(options.commands ?? {}, skills.values())

  async function mcpPrompts(signal = closing.signal): Promise<McpPrompt[]> {
    return (await mcp?.prompts(signal)) ?? []
  }

  async function mcpPrompt({
    signal = closing.signal,
    ...asked
  }: Parameters<Tackle["mcpPrompt"]>[0]): Promise<McpPromptMessage[]> {
    if (!mcp) throw new UsageError("There are no MCP servers: the configuration names none.")
    return hide(await mcp.prompt({ ...asked, signal }))
  }

  return {
    directory,
    worktree,
    dataDirectory,
    sessions,
    agents,
    store,
    on: listen,
    subscribe: (listener) => bus.subscribe(listener),
    reply: (requestID, reply, source = "person") => permission.reply(requestID, reply, source),
    pendingRequests: (sessionID) => permission.pending(sessionID),
    async explain({ agent: name = options.defaultAgent ?? "build", ...request }) {
      const agent = agentNamed(name)
      const place = { id: "", worktree }
      await grants.load(place)
      const scope = scopeOf(() => policyOf(place, agent), [])
      return hide(await permission.explain(request, scope))
    },
    grants: async () => hide(await grants.list(worktree)),
    async revoke(ids) {
      const known = new Set((await grants.list(worktree)).map(({ id }) => id))
      const unknown = ids.find((id) => !known.has(id))
      if (unknown !== undefined) throw new UsageError(`There is no grant "${unknown}" in ${worktree}.`)
      await grants.remove(ids)
    },
    questions: { reply: questions.reply, reject: questions.reject, pending: questions.pending },
    models: () => models.list(),
    commands,
    readCommand: (text, { signal = closing.signal } = {}) =>
      readCommand(text, commands(), {
        servers: Object.keys(options.mcp ?? {}),
        list: () => mcpPrompts(signal),
        fill: (asked) => mcpPrompt({ ...asked, signal }),
      }),
    async tools({ agent: name = options.defaultAgent ?? "build", model, signal } = {}) {
      const agent = agentNamed(name)
      const chosen = model ?? (typeof options.model === "string" ? options.model : undefined)
      const ref = chosen === undefined ? { providerID: "", modelID: "" } : parseModelName(chosen)
      const policy = policyOf({ id: "", worktree }, agent)
      const lacking = { ...lackingIn(agent), tool_search: onlyForMany }
      const listed = registry.list({ model: ref, agent: agent.name, policy, lacking })
      return signal ? orAbort(listed, signal) : listed
    },
    async mcpServers({ signal } = {}) {
      const status = mcp?.status() ?? Promise.resolve([])
      return signal ? orAbort(status, signal) : status
    },
    mcpPrompts,
    mcpPrompt,
    problems: () => registry.problems(),
    callTool: (call) => callTool(call),
    caller: openCaller,
    async close() {
      closing.abort()
      await Promise.all([...[...handles.values()].map((handle) => handle.abort()), Promise.allSettled(calls)])
      await plugins?.host.close()
      pluginsEnded.abort()
      await jobs.killAll()
      await mcp?.close()
      processes.clear()
      await orphansEnded
      await languages?.close()
      await sandbox.close()
      await cleanedUp
      if (!options.store) await store.close()
      release()
    },
  }
}

/** What has nothing to work on where a tool is called by itself. */
const onlyInSessions: Record<string, string> = Object.fromEntries(
  ["task", "plan_enter", "plan_exit", "tool_search"].map((id) => [
    id,
    "it works only within a session (tackle run)",
  ]),
)

/** Why a list of all tools has this one not among those that are offered. */
const onlyForMany =
  "it is offered in a session in place of tools whose definitions are too long together (tool_search.maxBytes)"

/** The one file that an agent in plan mode may write, without a question. */
function planRules(file: string | undefined): Ruleset {
  if (file === undefined) return []
  const rule = { action: "allow", source: { file: "the plan file" } } as const
  return [
    { ...rule, permission: "edit", pattern: file },
    { ...rule, permission: "external_directory", pattern: `${dirname(file)}/*` },
  ]
}

/** The bound of an agent whose commands need a sandbox, where there is none. */
const withoutSandbox: Ruleset = [
  { permission: "bash", pattern: "*", action: "deny", source: { file: "no sandbox for the built-in agent" } },
]

function replyOf(word: PermissionReply["reply"]): PermissionReply {
  return word === "always" ? { reply: word, scope: "session" } : { reply: word }
}

/** A model of the AI SDK as one of ours; nothing is known of its limits and prices. */
function modelOf(language: LanguageModel): Model {
  const ref: ModelRef = { providerID: language.provider, modelID: language.modelId }
  return {
    info: { ref, name: language.modelId, toolCall: true, limit: {}, family: "other" },
    language: async () => language,
  }
}

function isModel(given: LanguageModel | Model, ref: ModelRef): boolean {
  const own = "doStream" in given ? modelOf(given).info.ref : given.info.ref
  return own.providerID === ref.providerID && own.modelID === ref.modelID
}

/** The ledger of a call that a person makes by hand: they vouch for the file as it is now. */
function personsLedger(locks: PathLocks): FileLedger {
  const ledger = createFileLedger(locks)
  return { ...ledger, seen: (path) => ledger.seen(path) ?? stampNow(path) }
}

function stampNow(path: string): FileStamp | undefined {
  const found = statSync(path, { throwIfNoEntry: false })
  return found?.isFile() ? stampBytes(readFileSync(path), found.mtimeMs) : undefined
}

/** `$TACKLE_DATA_DIR`, else `$XDG_DATA_HOME/tackle`, else `~/.local/share/tackle`. */
export function defaultDataDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  const { TACKLE_DATA_DIR: own, XDG_DATA_HOME: shared } = environment
  return own || join(shared || join(homeDirectory(), ".local/share"), "tackle")
}

async function openDefaultStore(dataDirectory: string): Promise<Store> {
  const { openSqliteStore } = await import("../store/sqlite.ts")
  return openSqliteStore(join(dataDirectory, "tackle.db"))
}
