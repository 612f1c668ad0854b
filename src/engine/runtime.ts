import { holdProcess } from "../call/containment.ts"
import { defaultScanLimits } from "../files/scan.ts"
import { createTurnChanges } from "../files/turn-changes.ts"
import { EngineClosedError } from "../session/handle.ts"
import type { SessionServices } from "../session/services.ts"
import { openSession } from "../session/session.ts"
import { newId } from "../util/id.ts"
import { realPath } from "../util/paths.ts"
import { identifyProcess } from "../util/process-table.ts"
import { createAuthority } from "./authority.ts"
import { openEquipment } from "./equipment.ts"
import { layFoundation } from "./foundation.ts"
import { startHousekeeping } from "./housekeeping.ts"
import { createLoneCalls } from "./lone-calls.ts"
import { createLookups } from "./lookups.ts"
import { createMcpAnswers } from "./mcp.ts"
import { openCaller } from "./open-caller.ts"
import { createOpenSessions } from "./open-sessions.ts"
import type { TackleOptions } from "./options.ts"
import { createPersonsLedger } from "./persons-ledger.ts"
import { readCommand } from "./prompt-command.ts"
import { sessionSettings } from "./session-settings.ts"
import { createSessions } from "./sessions.ts"
import { createSubagents } from "./subagents.ts"
import type { Tackle } from "./tackle.ts"
import { openToolset } from "./toolset.ts"

/** Opens an engine. Whoever opens one closes it: until then it holds the store and watches for escaped errors. */
export async function createTackle(given: TackleOptions): Promise<Tackle> {
  // What is begun here ends in reverse: at once where the rest cannot be opened, else when the engine is closed.
  await using opening = new AsyncDisposableStack()
  opening.defer(holdProcess())
  const foundation = await layFoundation(given, opening)
  const { options, place, places, processes, mask, credentials, plugins, store } = foundation
  const { environment, directory, worktree, dataDirectory, onProblem } = place
  const { defaultAgent = "build" } = options
  const hide = mask.value
  const equipment = await openEquipment(foundation, opening)
  const { bus, jobs, fileCommits, questions, definitions, models, modelChoice, sandbox } = equipment
  const { retention, contents, languages, formatter } = equipment
  const { agents } = definitions

  // The sessions under way.
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
  const authority = createAuthority(foundation, equipment, opened)
  const { lineage, grantStore, grants, permission, listening, planFile, policies, reach, lacking } = authority
  const { mcp, registry, onToolsChanged } = await openToolset(foundation, equipment, authority, opening)

  // Who only looks does not wait for it; prompts wait for a part of it, and `close` does.
  const housekeeping = startHousekeeping({
    dataDirectory,
    retention,
    limits: options.limits,
    store,
    contents,
    processes,
    temporaries: foundation.temporaries,
    placeholders: foundation.placeholders,
    jobs,
    onProblem,
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
    subagents: createSubagents({ limits: authority.subagentLimits, agents, reach, opened }),
    questions,
    lacking,
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
    onEscape: (tool, error) => onProblem(`an error escaped the ${tool} tool`, error),
    ...searchPath,
    mask,
    ...(plugins === undefined ? {} : { plugins: plugins.host }),
  }
  const sessions = createSessions({
    onProblem,
    store,
    directory,
    worktree,
    holder: services.holder,
    kept: [places.outputs, places.plans],
    endJobs: (sessionIDs) => jobs.killOf(sessionIDs),
    defaultAgent,
    checkModel: async (agent, model) => modelChoice.check(agents.named(agent), model),
    opened,
    replays: options.recorded !== undefined,
  })
  const calls = createLoneCalls({
    directory,
    worktree,
    defaultAgent,
    signal: closing.signal,
    policies,
    lacking,
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
    lacking,
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
    providers: () => models.providers(),
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
    onToolsChanged,
    problems: () => registry.problems(),
    callTool: (call) => calls.run(call, { id: newId("ses"), files: createPersonsLedger(fileCommits) }),
    caller: (caller = {}) => openCaller({ calls, defaultAgent, jobs, grants: grantStore, services }, caller),
    close: () => {
      ended ??= parts.disposeAsync()
      return ended
    },
  }
}
