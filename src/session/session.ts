import type { Agent } from "../agent/agent.ts"
import { newTurn } from "../call/call.ts"
import type { EventOf, Usage } from "../event/events.ts"
import { createPromptBuilder } from "../model/convert.ts"
import { type Model, parseModelName } from "../model/model.ts"
import type { AssistantMessage, MessageWithParts, UserMessage } from "../schema/message.ts"
import type { Part, ToolPart } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import type { Direction } from "../snapshot/undo.ts"
import type { ChangeCapability, InstructionCapability, JobInfo } from "../tool/context.ts"
import { createFileLedger } from "../tool/ledger.ts"
import type { Handover } from "../tool/result.ts"
import { createSpillOpener } from "../tool/spill.ts"
import { newId } from "../util/id.ts"
import { demandAnswer } from "./answer-demand.ts"
import { attachMentions, type MentionedFiles } from "./attach-mentions.ts"
import { assertCountable, type Budget, limitReached, restOf } from "./budget.ts"
import { type CompactionInput, type CompactionResult, compact } from "./compact.ts"
import { createContextRoom } from "./context-room.ts"
import { addUsage, sumUsage } from "./cost.ts"
import { conclude, concludeBroken, type Ending, withOthers } from "./ending.ts"
import { eventStream } from "./event-stream.ts"
import { type PromptFile, type PromptOptions, SessionBusyError, type SessionHandle } from "./handle.ts"
import { historyPages, type PageReader } from "./history.ts"
import { withLease } from "./lease.ts"
import { runLoop } from "./loop.ts"
import { createNearInstructions } from "./near-instructions.ts"
import { hookMessage } from "./plugin-hooks.ts"
import { dropSummed } from "./prompt-history.ts"
import { createRecorder } from "./recorder.ts"
import { restoreLedger, settleInterrupted } from "./restore.ts"
import {
  type ExpandedCommand,
  expandCommand,
  givenBack,
  lend,
  type PromptOwner,
  promptOwner,
} from "./run-command.ts"
import type { SessionServices } from "./services.ts"
import { createSpawner } from "./subagent.ts"
import { createTodoCapability } from "./todo.ts"
import { createTurnPatch } from "./turn-patch.ts"
import { describeUndone, type UndoResult, undoTurn } from "./undo.ts"
import { newUserMessage, titleOf } from "./user-message.ts"
import { createWorker, type RunContext, type Worker } from "./worker.ts"

/** A handle on a session that is in the store. */
export function openSession(initial: Session, services: SessionServices): SessionHandle {
  const { store, bus } = services
  const recorder = createRecorder({ sessionID: initial.id, store, bus, mask: services.mask })
  const files = createFileLedger(services.fileCommits)
  const readPage: PageReader = (page) => store.messages(initial.id, page)
  let instructions: InstructionCapability | undefined
  let toPrompt = createPromptBuilder()
  let session = givenBack(initial)
  /** What the model is given; all else stays in the store. */
  let history: MessageWithParts[] | undefined
  let running: { controller: AbortController; ended: Promise<unknown> } | undefined

  async function load(): Promise<MessageWithParts[]> {
    if (history) return history
    const loaded: MessageWithParts[] = []
    for await (const page of historyPages(readPage)) {
      await settlePage(page)
      restoreLedger(page, files)
      loaded.push(...page)
      dropSummed(loaded)
    }
    watchInstructions(loaded)
    history = loaded
    return loaded
  }

  /** What another engine added since this one looked becomes part of the history. */
  async function catchUp(): Promise<void> {
    const stored = await store.session(session.id)
    if (!stored || stored.time.updated === session.time.updated) return
    session = givenBack(stored)
    history = undefined
  }

  /** A command's agent and model are those of its prompt alone. */
  async function run(text: string, options: PromptOptions, signal: AbortSignal): Promise<Ending> {
    await catchUp()
    const owner = promptOwner(options, services)
    session = lend(session, owner, { keepModel: options.model !== undefined })
    try {
      return await work(text, { ...options, ...owner }, signal)
    } finally {
      if (session.lent) {
        session = givenBack(session)
        await recorder.session(session)
      }
    }
  }

  async function work(
    text: string,
    options: PromptOptions & PromptOwner,
    signal: AbortSignal,
  ): Promise<Ending> {
    const started = Date.now()
    const past = await load()
    await services.definitions.follow()
    session = { ...session, agent: options.agent ?? session.agent }
    const agent = services.agent(session.agent)
    const named = options.model === undefined ? {} : { model: parseModelName(options.model) }
    const model = await services.model({ ...session, ...named }, agent)
    const { maxSteps = agent.steps, maxTokens, maxCost } = options
    const budget: Budget = {
      maxSteps,
      ...(maxTokens === undefined ? {} : { maxTokens }),
      ...(maxCost === undefined ? {} : { maxCost }),
    }
    assertCountable(budget, model.info)
    const { outputSchema } = options
    const demand = outputSchema && demandAnswer(outputSchema, model.info)
    await services.loadPolicy(session)
    const notes = demand ? [demand.instructions] : []
    const user = await begin(past, { text, notes, files: options.files ?? [], agent, model, signal })
    const room = createContextRoom({
      history: past,
      info: model.info,
      compact: () => compactHistory({ history: past, agent, model, auto: true, signal }),
      warn: (fill) => bus.publish({ type: "context.filling", sessionID: session.id, ...fill }),
    })
    const ends: EventOf<"run.completed">[] = []
    const sampled: CompactionResult["spent"] = []
    const besides = () => [...room.spent, ...sampled]
    const spentElsewhere = () => addUsage([sumUsage(besides()), ...ends.map(({ usage }) => usage)])
    const usedWith = (...underWay: Usage[]) =>
      addUsage([sumUsage(stepsSince(user, past)), spentElsewhere(), ...underWay])
    const spawn = createSpawner({
      parent: () => session,
      model: model.info.ref,
      bus,
      services: services.subagents,
      onEnd: (end) => ends.push(end),
      rest: (underWay) => restOf(budget, usedWith(underWay)),
      limit: (underWay) => limitReached(budget, 0, usedWith(underWay)) ?? options.shared?.limit(),
      onUse: (underWay) => options.shared?.used(usedWith(underWay)),
    })
    const context: RunContext = {
      session: () => session,
      model,
      toPrompt: (input) => toPrompt(input),
      files,
      instructions: instructions && { near: (file) => instructions?.near(file) ?? Promise.resolve([]) },
      changes: changesOf(past),
      todo: createTodoCapability(session.id, store, recorder),
      spawn,
      rest: () => restOf(budget, usedWith()),
      onSpent: (spent) => sampled.push(spent),
      signal,
      ...(demand?.tool === undefined ? {} : { tool: demand.tool }),
      ...(options.caller === undefined ? {} : { caller: options.caller }),
    }
    async function workAs(name: string): Promise<Worker> {
      await services.definitions.follow()
      // Who works on the prompt stays as it was when that began.
      return await createWorker(name === agent.name ? agent : services.agent(name), context, services)
    }
    const worker = await workAs(agent.name)
    const expanded = await expandCommandTo(user, options, worker, past)
    const mentioned = await attachMentionsTo(user, expanded?.mentions ?? text, worker, past)
    const result = await runLoop({
      session,
      worker,
      workAs,
      ...(demand === undefined ? {} : { demand }),
      tell: (text) => tell(text, model, past),
      handOver: (handover) => goOverTo(handover, model, past),
      model,
      user,
      history: past,
      budget,
      shared: options.shared,
      spentElsewhere,
      limits: services.streamLimits,
      retry: services.retry,
      recorder,
      room,
      plugins: services.plugins,
      signal,
    })
    const end = conclude({ bus, sessionID: session.id, started }, result, {
      past,
      spent: besides(),
      answer: demand?.answer,
    })
    return withOthers(end, ends, [...(expanded?.refused ?? []), ...mentioned.refused])
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

  /** Those that the model was given and still has are not given again. */
  function watchInstructions(known: readonly MessageWithParts[]): void {
    const find = services.instructionsNear
    if (find) instructions = createNearInstructions(find, known)
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
        plugins: services.plugins,
        ...choice,
      })
    } finally {
      dropSummed(choice.history)
      watchInstructions(choice.history)
      // Messages that were converted before may hold outputs which are pruned now.
      toPrompt = createPromptBuilder()
    }
  }

  function goBack(direction: Direction, { others = false }: { others?: boolean } = {}): Promise<UndoResult> {
    return alone(async () => {
      await catchUp()
      const { contents } = services
      const { note } = files
      const undone = await undoTurn(session, { direction, others, readPage, contents, recorder, note })
      session = undone.session
      return undone.result
    })
  }

  /** Runs work that writes the session, while nobody else does. */
  async function alone<T>(work: (stopped: AbortSignal) => Promise<T>): Promise<T> {
    services.assertOpen()
    if (running) throw new SessionBusyError(session.id)
    const controller = new AbortController()
    const ended = whileHeld(() => work(controller.signal))
    running = { controller, ended: ended.catch(() => {}) }
    try {
      return await ended
    } finally {
      running = undefined
    }
  }

  /** What a command says to the model becomes a part of the person's message, beside what they wrote and its calls. */
  async function expandCommandTo(
    { id: messageID }: UserMessage,
    { command, subagent }: PromptOptions & PromptOwner,
    worker: Worker,
    past: readonly MessageWithParts[],
  ): Promise<ExpandedCommand | undefined> {
    if (!command) return undefined
    const offered = new Map(worker.tools(past).map((tool) => [tool.id, tool]))
    const kept = new Map<string, Part>()
    const keep = async (part: Part) => {
      kept.set(part.id, part)
      await recorder.write({ parts: [part] })
    }
    const host = { ...worker.host({ messageID, turn: newTurn(), offered }), keep }
    const expanded = await expandCommand(command, host, subagent)
    const base = { id: newId("prt"), sessionID: session.id, messageID }
    await keep({ ...base, type: "text", text: expanded.text, synthetic: true })
    past.at(-1)?.parts.push(...kept.values())
    return expanded
  }

  /** What runs of this session left is out of the way, and no other engine writes it. */
  async function whileHeld<T>(work: () => Promise<T>): Promise<T> {
    await services.cleared
    return withLease({ store, sessionID: session.id, holder: services.holder, settle }, work)
  }

  /** Closes what a run left open that could not store its own end. */
  async function settle(): Promise<void> {
    for await (const page of historyPages(readPage)) await settlePage(page)
  }

  async function settlePage(page: readonly MessageWithParts[]): Promise<void> {
    const settled = settleInterrupted(page)
    if (settled.messages.length + settled.parts.length > 0) await recorder.write(settled)
  }

  /** What a prompt of the person's names with `@` becomes parts of their message. A model's words name nothing. */
  async function attachMentionsTo(
    { id: messageID }: UserMessage,
    text: string,
    worker: Worker,
    past: readonly MessageWithParts[],
  ): Promise<MentionedFiles> {
    const offered = new Map(worker.tools(past).map((tool) => [tool.id, tool]))
    // What is attached is no call of the model's, and never recorded as one: see `attach`.
    const { recorded: _, ...host } = worker.host({ messageID, turn: newTurn(), offered })
    if (host.parent) return { files: [], notes: [], refused: [] }
    const agents = host.spawn ? services.subagents.startable(host.agent) : []
    const find = () => attachMentions(text, host, agents)
    const mentioned = await (services.attach?.(find) ?? find())
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
      notes,
      files: given,
      agent,
      model,
      signal,
    }: {
      text: string
      /** What Tackle adds to it. */
      notes: readonly string[]
      files: readonly PromptFile[]
      agent: Agent
      model: Model
      signal: AbortSignal
    },
  ): Promise<UserMessage> {
    const message = newUserMessage({ session, agent, model })
    const base = () => ({ id: newId("prt"), sessionID: session.id, messageID: message.id })
    const said: Part[] = [
      { ...base(), type: "text", text },
      ...given.map((file) => ({ ...base(), type: "file" as const, ...file })),
    ]
    const parts = await hookMessage(services.plugins, message, said, signal)
    for (const note of notes) parts.push({ ...base(), type: "text", text: note, synthetic: true })
    const putBack = await describeUndone(session.undone, readPage)
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
    await recorder.session(session)
    return tell(text, model, past)
  }

  /** A message to the model in the person's place. */
  async function tell(text: string, model: Model, past: MessageWithParts[]): Promise<UserMessage> {
    const message = newUserMessage({ session, agent: services.agent(session.agent), model })
    const messageID = message.id
    const parts: Part[] = [
      { id: newId("prt"), sessionID: session.id, messageID, type: "text", text, synthetic: true },
    ]
    await recorder.write({ messages: [message], created: true, parts })
    past.push({ message, parts })
    return message
  }

  return {
    id: initial.id,
    info: () => session,
    prompt(text, options = {}) {
      services.assertOpen()
      if (running) throw new SessionBusyError(session.id)
      const controller = new AbortController()
      const signal = options.signal ? AbortSignal.any([controller.signal, options.signal]) : controller.signal
      const events = eventStream(bus, session.id, () => controller.abort())
      const started = Date.now()
      const completed = whileHeld(() => run(text, options, signal))
        .catch((error: unknown) => {
          // What could not be stored did not happen: the next prompt goes on from the store, and settles what is open there.
          history = undefined
          return concludeBroken({ bus, sessionID: session.id, started }, error)
        })
        .then((event) => {
          running = undefined
          if (services.lineage.rootOf(session.id) === session.id) services.turns.delete(session.id)
          // A subagent's work is seldom taken up again: what it read need not stay in memory till then.
          if (session.parentID !== undefined) {
            history = undefined
            toPrompt = createPromptBuilder()
          }
          return bus.publish(event)
        })
      running = { controller, ended: completed }
      return { completed, [Symbol.asyncIterator]: () => events }
    },
    async abort() {
      running?.controller.abort()
      await running?.ended
    },
    messages: (page = {}) => readPage(page),
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

/** The steps that answer a prompt, so far. */
function stepsSince(user: UserMessage, history: readonly MessageWithParts[]): AssistantMessage[] {
  return history.flatMap(({ message }) =>
    message.role === "assistant" && message.id > user.id ? [message] : [],
  )
}
