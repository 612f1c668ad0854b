import type { Agent } from "../agent/agent.ts"
import { newTurn } from "../call/call.ts"
import type { Bus } from "../event/bus.ts"
import type { EventInput, EventOf, Refusal, RunStatus, TackleEvent } from "../event/events.ts"
import { createPromptBuilder } from "../model/convert.ts"
import { type Model, parseModelName } from "../model/model.ts"
import type { RetryLimits } from "../model/retry.ts"
import type { StreamLimits } from "../model/stream.ts"
import type { Permission, Scope } from "../permission/engine.ts"
import type { Policy } from "../permission/policy.ts"
import type { Registry } from "../registry/registry.ts"
import type { MessageWithParts, UserMessage } from "../schema/message.ts"
import type { Part, ToolPart } from "../schema/part.ts"
import type { CallReference } from "../schema/permission.ts"
import type { Session } from "../schema/session.ts"
import type { ContentStore } from "../snapshot/content-store.ts"
import type { TurnRecord } from "../snapshot/turn-changes.ts"
import type { Direction } from "../snapshot/undo.ts"
import type { LeaseHolder, Store } from "../store/store.ts"
import type {
  ChangeCapability,
  JobCapability,
  JobInfo,
  LanguageCapability,
  SandboxCapability,
} from "../tool/context.ts"
import { createFileLedger } from "../tool/ledger.ts"
import type { Handover } from "../tool/result.ts"
import type { SecretMask } from "../tool/secrets.ts"
import { createSpillOpener } from "../tool/spill.ts"
import type { OutputLimits } from "../tool/tool.ts"
import { AbortedError, TimeoutError } from "../util/abort.ts"
import { errorMessage, TackleError, UsageError } from "../util/errors.ts"
import { newId } from "../util/id.ts"
import { attachMentions, type MentionedFiles } from "./attach-mentions.ts"
import { type CompactionInput, type CompactionResult, compact } from "./compact.ts"
import { createContextRoom } from "./context-room.ts"
import { addUsage, sumUsage } from "./cost.ts"
import { eventStream } from "./event-stream.ts"
import { withLease } from "./lease.ts"
import type { Lineage } from "./lineage.ts"
import { type LoopResult, runLoop } from "./loop.ts"
import type { Questions } from "./questions.ts"
import { createRecorder } from "./recorder.ts"
import { restoreLedger, settleInterrupted } from "./restore.ts"
import { createSpawner, type SubagentServices } from "./subagent.ts"
import { createTodoCapability } from "./todo.ts"
import { createTurnPatch } from "./turn-patch.ts"
import { describeUndone, type UndoResult, undoTurn } from "./undo.ts"
import { createWorker, type RunContext, type Worker } from "./worker.ts"

/** The session works on another prompt. */
export class SessionBusyError extends TackleError {
  constructor(id: string) {
    super(`Session ${id} is still working on a prompt. Wait for its run.completed, or abort it first.`, {
      code: "session.busy",
      recoverable: false,
    })
  }
}

/** What a person gives a prompt beside its text. */
export interface PromptFile {
  mime: string
  /** A data URL, or an absolute path. */
  url: string
  filename?: string
}

export interface PromptOptions {
  files?: readonly PromptFile[]
  /** Fires to interrupt the run; every part is finished before it ends. */
  signal?: AbortSignal
  /** Replaces the step limit of the agent. At least 1. */
  maxSteps?: number
  /** Ends the run after the step that reaches so many tokens and a last one without calls. What came from a cache is free. */
  maxTokens?: number
  /** `provider/model`: from now on the session's model. */
  model?: string
  /** The `task` call that this prompt works for: what is asked of a person names it. */
  caller?: NonNullable<CallReference["parent"]>
}

/** A run under way: its events in order, and its end. Leaving the loop early interrupts the run. */
export interface PromptRun extends AsyncIterable<TackleEvent> {
  /** Resolves with the last event; never rejects: a run that could not begin ends as `failed`. */
  readonly completed: Promise<EventOf<"run.completed">>
}

/** A conversation that can be prompted. */
export interface SessionHandle {
  readonly id: string
  info(): Session
  /**
   * Starts at once, whether anybody reads the events or not. `@path` in the text attaches that file or directory of
   * the worktree, by the rules of the session. Throws {@link SessionBusyError}.
   */
  prompt(text: string, options?: PromptOptions): PromptRun
  /** Interrupts the run under way, if there is one; resolves when it has ended. */
  abort(): Promise<void>
  messages(): Promise<MessageWithParts[]>
  /**
   * Replaces what is old by a summary, for the model alone: nothing is deleted. Asks the session's model. Throws
   * `CompactionError` where that does not make it smaller, {@link SessionBusyError}, and what asking throws.
   */
  compact(options?: { signal?: AbortSignal }): Promise<CompactionResult>
  /**
   * Puts the files of the last turn that changed any back to what they were before it; `redo` takes that back, until the
   * next prompt. All or none, and none that somebody else changed since: throws `UndoRefusedError`, which names them.
   * With `others` those are left alone. Throws `UsageError` where there is nothing to do, and {@link SessionBusyError}.
   */
  undo(options?: { others?: boolean }): Promise<UndoResult>
  redo(options?: { others?: boolean }): Promise<UndoResult>
}

/** What sessions are built on. Bound once, by the runtime. */
export interface SessionServices {
  store: Store
  bus: Bus
  /** Under this name the engine works on sessions. */
  holder: LeaseHolder
  registry: Registry
  permission: Permission
  jobs: JobCapability
  /** Absent where language servers are switched off. */
  lsp?: LanguageCapability
  /** The sandbox for the commands of an agent. */
  sandbox(agent: Agent, scope: Scope): SandboxCapability
  policy(session: Session, agent: Agent): Policy
  /** Brings the grants and sessions that the policy reads up to date with the store. */
  loadPolicy(session: Session): Promise<void>
  lineage: Lineage
  subagents: SubagentServices
  questions: Questions
  /** Tools that the agent cannot have in this session whatever the rules say, with the reason. */
  lacking(agent: Agent, session: Session): Readonly<Record<string, string>>
  /** Where the session keeps its plan. Undefined where there is no plan mode for it. */
  planFile(session: Session): string | undefined
  /** Directories of the skills that the agent may load. */
  skillDirectories(agent: Agent): string[]
  agent(name: string): Agent
  model(session: Session, agent: Agent): Promise<Model>
  instructions: readonly string[]
  /** `PATH` of the commands that run. */
  searchPath?: string
  /** What files were before they were changed. */
  contents: ContentStore
  /** Notes what a turn does to files, and gives each state of the record to `save`. */
  watchChanges(save: (record: TurnRecord) => Promise<void>): ChangeCapability
  /** The turns under way, by the session at the top: what subagents change is part of them. */
  turns: Map<string, ChangeCapability>
  /** `<data>/truncate`: spill files lie below it, by session. */
  spillRoot: string
  spillBytes?: number
  mask?: SecretMask
  outputLimits?: Partial<OutputLimits>
  streamLimits: StreamLimits
  retry: RetryLimits
  onEscape(tool: string, error: unknown): void
}

/** The last event of a run, before the bus puts its time on it. */
type Ending = Extract<EventInput, { type: "run.completed" }>

/** A handle on a session that is in the store. */
export function openSession(initial: Session, services: SessionServices): SessionHandle {
  const { store, bus } = services
  const recorder = createRecorder({ sessionID: initial.id, store, bus, mask: services.mask })
  const files = createFileLedger()
  let toPrompt = createPromptBuilder()
  let session = initial
  let history: MessageWithParts[] | undefined
  let running: { controller: AbortController; ended: Promise<unknown> } | undefined

  async function load(): Promise<MessageWithParts[]> {
    if (history) return history
    const stored = await store.messages(session.id)
    const settled = settleInterrupted(stored)
    if (settled.messages.length + settled.parts.length > 0) await recorder.write(settled)
    restoreLedger(stored, files)
    history = stored
    return stored
  }

  /** What another engine added since this one looked becomes part of the history. */
  async function catchUp(): Promise<void> {
    const stored = await store.session(session.id)
    if (!stored || stored.time.updated === session.time.updated) return
    session = stored
    history = undefined
  }

  async function run(text: string, options: PromptOptions, signal: AbortSignal): Promise<Ending> {
    const started = Date.now()
    await catchUp()
    const past = await load()
    const agent = services.agent(session.agent)
    const named = options.model === undefined ? {} : { model: parseModelName(options.model) }
    const model = await services.model({ ...session, ...named }, agent)
    await services.loadPolicy(session)
    const user = await begin(past, { text, files: options.files ?? [], agent, model })
    const ends: EventOf<"run.completed">[] = []
    const spawn = createSpawner({
      parent: () => session,
      model: model.info.ref,
      bus,
      services: services.subagents,
      onEnd: (end) => ends.push(end),
    })
    const context: RunContext = {
      session: () => session,
      model,
      toPrompt: (input) => toPrompt(input),
      files,
      changes: changesOf(past),
      todo: createTodoCapability(session.id, store, recorder),
      spawn,
      signal,
      ...(options.caller === undefined ? {} : { caller: options.caller }),
    }
    const workAs = (name: string) => createWorker(services.agent(name), context, services)
    const worker = await workAs(agent.name)
    const mentioned = await attachMentionsTo(user, text, worker, past)
    const room = createContextRoom({
      history: past,
      info: model.info,
      compact: () => compactHistory({ history: past, agent, model, auto: true, signal }),
    })
    const result = await runLoop({
      session,
      worker,
      workAs,
      handOver: (handover) => goOverTo(handover, model, past),
      model,
      user,
      history: past,
      maxSteps: options.maxSteps ?? agent.steps,
      ...(options.maxTokens === undefined ? {} : { maxTokens: options.maxTokens }),
      limits: services.streamLimits,
      retry: services.retry,
      recorder,
      room,
      signal,
    })
    return withOthers(conclude(result, past, started, room.spent), ends, mentioned.refused)
  }

  /** A subagent's changes are part of the turn that it works for. The message that began the turn is the last. */
  function changesOf(past: readonly MessageWithParts[]): ChangeCapability | undefined {
    const root = services.lineage.rootOf(session.id)
    const [turn, begun] = [services.turns.get(root), past.at(-1)]
    if (turn || !begun) return turn
    const changes = services.watchChanges(createTurnPatch(begun, recorder))
    services.turns.set(root, changes)
    return changes
  }

  async function compactHistory(
    choice: Pick<CompactionInput, "history" | "agent" | "model" | "auto" | "signal">,
  ): Promise<CompactionResult> {
    const { spillRoot: root, spillBytes: maxBytes, mask, jobs, streamLimits: limits } = services
    const isOpen = (job: JobInfo) => job.sessionID === session.id && job.status === "running"
    const spill = (part: ToolPart, output: string) => {
      const place = { directory: `${root}/${session.id}`, name: part.id }
      const file = createSpillOpener({
        ...place,
        ...(maxBytes === undefined ? {} : { maxBytes }),
        ...(mask === undefined ? {} : { mask }),
      })()
      file.write(output)
      file.close()
      return file.path
    }
    const todos = await store.todos(session.id)
    try {
      return await compact({
        session,
        recorder,
        todos,
        jobs: jobs.list().filter(isOpen),
        spill,
        limits,
        ...choice,
      })
    } finally {
      // Messages that were converted before may hold outputs which are pruned now.
      toPrompt = createPromptBuilder()
    }
  }

  function goBack(direction: Direction, { others = false }: { others?: boolean } = {}): Promise<UndoResult> {
    return alone(async () => {
      await catchUp()
      const { contents } = services
      const undone = await undoTurn(session, { direction, others, history: await load(), contents, recorder })
      session = undone.session
      return undone.result
    })
  }

  /** Runs work that writes the session, while nobody else does. */
  async function alone<T>(work: (stopped: AbortSignal) => Promise<T>): Promise<T> {
    if (running) throw new SessionBusyError(session.id)
    const controller = new AbortController()
    const lease = { store, sessionID: session.id, holder: services.holder }
    const ended = withLease(lease, () => work(controller.signal))
    running = { controller, ended: ended.catch(() => {}) }
    try {
      return await ended
    } finally {
      running = undefined
    }
  }

  /** What a prompt of the person's names with `@` becomes parts of their message. A model's words name nothing. */
  async function attachMentionsTo(
    { id: messageID }: UserMessage,
    text: string,
    worker: Worker,
    past: readonly MessageWithParts[],
  ): Promise<MentionedFiles> {
    const offered = new Map(worker.tools.map((tool) => [tool.id, tool]))
    const host = worker.host({ messageID, turn: newTurn(), offered })
    if (host.parent) return { files: [], notes: [], refused: [] }
    const agents = host.spawn ? services.subagents.startable(host.agent) : []
    const mentioned = await attachMentions(text, host, agents)
    const base = () => ({ id: newId("prt"), sessionID: session.id, messageID })
    const parts: Part[] = [
      ...mentioned.files.map((file) => ({ ...base(), type: "file" as const, ...file })),
      ...mentioned.notes.map((note) => ({ ...base(), type: "text" as const, text: note, synthetic: true })),
    ]
    if (parts.length > 0) await recorder.write({ parts })
    past.at(-1)?.parts.push(...parts)
    return mentioned
  }

  /** Stores the person's message, and the session with its new time and, at first, its title. */
  async function begin(
    past: MessageWithParts[],
    {
      text,
      files: given,
      agent,
      model,
    }: { text: string; files: readonly PromptFile[]; agent: Agent; model: Model },
  ): Promise<UserMessage> {
    const message = newUserMessage({ session, agent, model })
    const base = () => ({ id: newId("prt"), sessionID: session.id, messageID: message.id })
    const parts: Part[] = [
      { ...base(), type: "text", text },
      ...given.map((file) => ({ ...base(), type: "file" as const, ...file })),
    ]
    const putBack = describeUndone(session.undone, past)
    if (putBack !== undefined) parts.push({ ...base(), type: "text", text: putBack, synthetic: true })
    const time = { ...session.time, updated: message.time.created }
    session = { ...session, model: model.info.ref, time }
    delete session.undone
    if (session.title === "") session.title = titleOf(text)
    await recorder.session(session)
    await recorder.write({ messages: [message], created: true, parts })
    past.push({ message, parts })
    return message
  }

  /** From now on, also in later prompts, the session is the other agent's; it is told so in a message. */
  async function goOverTo(
    { agent, message: text }: Handover,
    model: Model,
    past: MessageWithParts[],
  ): Promise<UserMessage> {
    session = { ...session, agent }
    const message = newUserMessage({ session, agent: services.agent(agent), model })
    const messageID = message.id
    const parts: Part[] = [
      { id: newId("prt"), sessionID: session.id, messageID, type: "text", text, synthetic: true },
    ]
    await recorder.session(session)
    await recorder.write({ messages: [message], created: true, parts })
    past.push({ message, parts })
    return message
  }

  function conclude(
    result: LoopResult,
    past: readonly MessageWithParts[],
    started: number,
    spent: CompactionResult["spent"],
  ): Ending {
    const { status, error, turn, messages } = result
    if (error && status !== "interrupted") {
      const { name, message, status: httpStatus } = error
      bus.publish({
        type: "session.error",
        sessionID: session.id,
        error: { name, message, ...(httpStatus === undefined ? {} : { status: httpStatus }) },
      })
    }
    return {
      type: "run.completed",
      sessionID: session.id,
      status,
      exitCode: exitCodeOf(result),
      text: lastText(past, messages.at(-1)?.id),
      usage: sumUsage([...messages, ...spent]),
      refused: turn.refused,
      durationMs: Date.now() - started,
    }
  }

  /** A run that could not even begin ends like any other: with its error and a `run.completed`. */
  function concludeBroken(error: unknown, started: number): Ending {
    // What could not be stored did not happen: the next prompt goes on from the store, and settles what is open there.
    history = undefined
    const status = brokenStatus(error)
    if (status !== "interrupted") {
      const message = errorMessage(error)
      bus.publish({ type: "session.error", sessionID: session.id, error: { name: "unknown", message } })
    }
    return {
      type: "run.completed",
      sessionID: session.id,
      status,
      exitCode: error instanceof UsageError ? 2 : exitCodes[status],
      text: "",
      usage: sumUsage([]),
      refused: [],
      durationMs: Date.now() - started,
    }
  }

  return {
    id: initial.id,
    info: () => session,
    prompt(text, options = {}) {
      if (running) throw new SessionBusyError(session.id)
      const controller = new AbortController()
      const signal = options.signal ? AbortSignal.any([controller.signal, options.signal]) : controller.signal
      const events = eventStream(bus, session.id, () => controller.abort())
      const started = Date.now()
      const lease = { store, sessionID: session.id, holder: services.holder }
      const completed = withLease(lease, () => run(text, options, signal))
        .catch((error: unknown) => concludeBroken(error, started))
        .then((event) => {
          running = undefined
          if (services.lineage.rootOf(session.id) === session.id) services.turns.delete(session.id)
          // A subagent's work is seldom taken up again: what it read need not stay in memory till then.
          if (session.parentID !== undefined) history = undefined
          return bus.publish(event)
        })
      running = { controller, ended: completed }
      return { completed, [Symbol.asyncIterator]: () => events }
    },
    async abort() {
      running?.controller.abort()
      await running?.ended
    },
    messages: () => store.messages(initial.id),
    compact: ({ signal: given } = {}) =>
      alone(async (stopped) => {
        const signal = given ? AbortSignal.any([stopped, given]) : stopped
        await catchUp()
        const history = await load()
        const agent = services.agent(session.agent)
        const model = await services.model(session, agent)
        const result = await compactHistory({ history, agent, model, auto: false, signal })
        session = { ...session, time: { ...session.time, updated: Date.now() } }
        await recorder.session(session)
        return result
      }),
    undo: (options) => goBack("undo", options),
    redo: (options) => goBack("redo", options),
  }
}

/** What subagents used and were refused is the run's that started them, and so is what was refused before it began. */
function withOthers(end: Ending, children: readonly Ending[], before: readonly Refusal[]): Ending {
  if (children.length + before.length === 0) return end
  const refused = [...before, ...end.refused, ...children.flatMap((child) => child.refused)]
  return {
    ...end,
    usage: addUsage([end, ...children].map(({ usage }) => usage)),
    refused,
    exitCode: end.status === "completed" && refused.length > 0 ? refusedCode : end.exitCode,
  }
}

function newUserMessage({
  session,
  agent,
  model,
}: {
  session: Session
  agent: Agent
  model: Model
}): UserMessage {
  return {
    id: newId("msg"),
    sessionID: session.id,
    role: "user",
    time: { created: Date.now() },
    agent: agent.name,
    model: model.info.ref,
  }
}

const titleLength = 60

/** The first line of what the person asked, cut at a word. */
function titleOf(text: string): string {
  const line = text.trim().split("\n", 1)[0] ?? ""
  if (line.length <= titleLength) return line
  const cut = line.slice(0, titleLength)
  return `${cut.slice(0, Math.max(cut.lastIndexOf(" "), titleLength / 2))}…`
}

/** 130 interrupted, 1 failed, 4 a limit, 3 finished with something refused, 0 finished. */
function exitCodeOf({ status, turn }: LoopResult): number {
  return status === "completed" && turn.refused.length > 0 ? refusedCode : exitCodes[status]
}

const refusedCode = 3

const exitCodes: Record<RunStatus, number> = { completed: 0, failed: 1, limit: 4, interrupted: 130 }

/** How a run ends that stopped before its first step. */
function brokenStatus(error: unknown): RunStatus {
  if (error instanceof AbortedError) return "interrupted"
  return error instanceof TimeoutError ? "limit" : "failed"
}

function lastText(history: readonly MessageWithParts[], messageID: string | undefined): string {
  const last = history.findLast(({ message }) => message.id === messageID)
  return (last?.parts ?? []).flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")
}
