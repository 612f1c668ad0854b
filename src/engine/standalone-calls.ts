import { readFileSync, statSync } from "node:fs"
import { settleUnstarted } from "../call/call-failure.ts"
import { activateAgent, type Call, type CallOutcome, newTurn, type Run, type Turn } from "../call/context.ts"
import { runCalls } from "../call/schedule.ts"
import { createFileTracker, type FileStamp, type FileTracker, stampBytes } from "../files/file-tracker.ts"
import { prepareOwn } from "../registry/offered-tool.ts"
import type { ToolListing } from "../registry/registry.ts"
import type { Todo } from "../schema/todo.ts"
import type { ToolStateRunning } from "../schema/tool-state.ts"
import type { SessionEngine } from "../session/session-engine.ts"
import type { AskForm, Sample, TodoCapability } from "../tool/context.ts"
import type { Info } from "../tool/tool.ts"
import { AbortedError, abortedError, keepAlive, orAbort } from "../util/abort.ts"
import { newId } from "../util/id.ts"
import { noUser, onlyInSessions } from "./tools.ts"

/** A call without a model or a stored session. */
export interface StandaloneCall {
  tool: string
  /** Arguments: an object, or JSON text. */
  input: string | Readonly<Record<string, unknown>>
  /** Name of the agent. Default: the engine's default agent. */
  agent?: string
  /** Identifies the call in requests, as `tool.messageID`. Nested calls have the same id. Default: a new id. */
  messageID?: string
  /** Values that the tool receives as `ctx.extra`. */
  extra?: Readonly<Record<string, unknown>>
  signal?: AbortSignal
  /** Receives the progress of the running call, at most ten times a second. */
  onProgress?(state: ToolStateRunning): void
}

/** A call that is made through a {@link Caller}. */
export interface CallerCall {
  tool: string
  /** Arguments: an object, or JSON text. */
  input: string | Readonly<Record<string, unknown>>
  /** Id of the call in requests, where it is `tool.messageID`. Nested calls have the same id. */
  messageID: string
  /** Values that the tool receives as `ctx.extra`. */
  extra?: Readonly<Record<string, unknown>>
  signal: AbortSignal
  /** Receives the progress of the running call, at most ten times a second. */
  onProgress(state: ToolStateRunning): void
  /**
   * A tool from the host that runs in place of one of the engine's tools. It is not offered to models, and it requests
   * its own permission.
   */
  by?: Info
  /** Shows forms from MCP servers to the user. */
  form?: AskForm
  /** Sends sampling requests from MCP servers to the client's model. */
  sample?: Sample
}

/** Settings that restrict a {@link Caller}. */
export interface CallerOptions {
  /** Name of the agent whose rules and tools apply. Default: the engine's default agent. */
  agent?: string
  /** Ids or aliases of the tools to offer. Default: all of the agent's tools. */
  tools?: readonly string[]
  /** Whether a user can answer questions. If false, tools that ask questions are not offered. */
  questions?: boolean
}

/**
 * Makes several calls without a stored session, for example for a client of `tackle mcp serve`. The calls share a file
 * tracker, a to-do list, jobs and grants for "this session", which last until the caller is closed.
 */
export interface Caller {
  /** The `sessionID` in requests and questions from this caller. */
  readonly id: string
  /** Lists every tool. A tool that is not offered includes the reason. */
  tools(signal: AbortSignal): Promise<ToolListing[]>
  /**
   * Makes a call. A call that fails or is aborted resolves with an error state. Rejects with `EngineClosedError` if the
   * engine is closed.
   */
  call(call: CallerCall): Promise<CallOutcome>
  /** Ends the caller's calls and jobs, and revokes its grants. */
  close(): Promise<void>
}

/** State that a caller keeps between calls. */
interface CallerState {
  id: string
  files: FileTracker
  todo?: TodoCapability
  /** Ids or aliases of the offered tools. If undefined, all of the agent's tools are offered. */
  chosen?: ReadonlySet<string>
  questions?: boolean
}

/**
 * Creates the functions that make standalone calls with an engine. The calls run through the whole pipeline without a
 * session, and are not stored. Each call is a separate turn. `forget` ends a caller's jobs and removes the caller's
 * grants.
 */
export function createStandaloneCalls(engine: SessionEngine, forget: (callerID: string) => Promise<void>) {
  const { directory, worktree, defaultAgent } = engine
  const { value: hide } = engine.mask
  const running = new Set<Promise<unknown>>()

  function isChosen({ chosen }: CallerState, { id }: { id: string }): boolean {
    return (
      chosen === undefined || [...chosen].some((name) => name === id || engine.registry.idOf(name) === id)
    )
  }

  async function activate(state: CallerState, name: string, given: Partial<Run> & { signal: AbortSignal }) {
    await engine.definitions.follow()
    const agent = engine.agent(name)
    const { id, files, todo } = state
    const run: Run = { ...given, engine, session: { id, directory, worktree }, files, todo }
    await engine.policies.load(run.session)
    const unavailable = { ...engine.unavailableTools(agent), ...onlyInSessions }
    if (state.questions === false) unavailable.question = noUser
    return activateAgent(run, agent, unavailable)
  }

  async function call(
    { tool, input, agent = defaultAgent, signal, ...given }: Partial<CallerCall> & StandaloneCall,
    state: CallerState,
  ): Promise<CallOutcome & { turn: Turn }> {
    const ended = signal ? AbortSignal.any([engine.closing, signal]) : engine.closing
    const { form, sample, extra } = given
    const active = await activate(state, agent, { form, sample, extra, signal: ended })
    const made: Call = {
      callID: newId("prt"),
      tool,
      raw: typeof input === "string" ? input : JSON.stringify(input),
    }
    const turn = newTurn()
    const registered = await orAbort(engine.registry.tools(active.toolScope), ended).catch(
      (error: unknown) => {
        if (ended.aborted) return undefined
        throw error
      },
    )
    if (!registered) return { ...settleUnstarted(made, abortedError(ended), turn), turn }
    const { by } = given
    const offered = by
      ? [await prepareOwn(by, active.toolScope)]
      : registered.filter((entry) => isChosen(state, entry))
    const [outcome] = await runCalls([made], {
      active,
      messageID: given.messageID ?? newId("msg"),
      offered: new Map(offered.map((entry) => [entry.id, entry])),
      turn,
      async report(callID, callState) {
        if (callID === made.callID && callState.status === "running") given.onProgress?.(callState)
      },
    })
    if (!outcome) throw new Error("runCalls returned no outcome for its call.")
    return { ...hide(outcome), turn: { ...turn, refused: hide(turn.refused) } }
  }

  /** Runs a call and makes `settled` wait for it. */
  async function tracked<T>(work: () => Promise<T>): Promise<T> {
    engine.assertOpen()
    const promise = work()
    running.add(promise)
    try {
      return await keepAlive(promise)
    } finally {
      running.delete(promise)
    }
  }

  function caller({ agent: name = defaultAgent, tools, questions = true }: CallerOptions): Caller {
    engine.assertOpen()
    const agent = engine.agent(name).name
    const state: CallerState = {
      id: newId("ses"),
      files: createFileTracker(engine.fileCommits),
      todo: createTodoList(),
      questions,
      chosen: tools && new Set(tools),
    }
    const closing = new AbortController()
    const own = new Set<Promise<unknown>>()
    return {
      id: state.id,
      async tools(signal) {
        const { toolScope } = await activate(state, agent, { signal })
        const listed = await orAbort(engine.registry.list(toolScope), signal)
        return listed.map((tool) => (isChosen(state, tool) ? tool : { ...tool, ...notChosen }))
      },
      async call(given) {
        const signal = AbortSignal.any([given.signal, closing.signal])
        const work = tracked(() => call({ ...given, signal, agent }, state))
        own.add(work)
        try {
          return await work
        } finally {
          own.delete(work)
        }
      },
      async close() {
        closing.abort(new AbortedError("The caller was closed."))
        await Promise.allSettled(own)
        await forget(state.id)
      },
    }
  }

  return {
    /**
     * Makes one call. Rejects with `EngineClosedError` if the engine is closed, and with `UsageError` if the agent is
     * unknown.
     */
    call: (given: StandaloneCall) =>
      tracked(() => call(given, { id: newId("ses"), files: trustingTracker(engine.fileCommits) })),
    /** Opens a caller. Throws `UsageError` if the agent is unknown, and `EngineClosedError` if the engine is closed. */
    caller,
    /** Resolves when no call is running. */
    async settled(): Promise<void> {
      await Promise.allSettled(running)
    },
  }
}

const notChosen = { offered: false, reason: "it is not one of the selected tools" }

/** Creates an in-memory to-do list, which lasts as long as its caller. */
function createTodoList(): TodoCapability {
  let todos: Todo[] = []
  return {
    read: async () => todos,
    async write(given) {
      todos = given
    },
  }
}

/**
 * Creates a tracker that treats every file as read in its current state, because a user who calls a tool by hand has
 * not read the file with Tackle first.
 */
function trustingTracker(commits: SessionEngine["fileCommits"]): FileTracker {
  const tracker = createFileTracker(commits)
  return { ...tracker, seen: (path) => tracker.seen(path) ?? stampNow(path) }
}

function stampNow(path: string): FileStamp | undefined {
  const found = statSync(path, { throwIfNoEntry: false })
  return found?.isFile() ? stampBytes(readFileSync(path), found.mtimeMs) : undefined
}
