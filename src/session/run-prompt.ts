import type { Agent } from "../agent/agent.ts"
import type { Refusal } from "../event/events.ts"
import type { ChangeCapability, TurnRecord } from "../files/turn-changes.ts"
import { type Model, parseModelName } from "../model/model.ts"
import type { Input, PromptFile } from "../schema/input.ts"
import type { AssistantMessage, MessageWithParts, UserMessage } from "../schema/message.ts"
import type { PatchPart } from "../schema/part.ts"
import type { Store } from "../store/store.ts"
import type { TodoCapability } from "../tool/context.ts"
import { throwIfAborted } from "../util/abort.ts"
import { newId } from "../util/id.ts"
import { assertCountable, type Budget, createSpending } from "./budget.ts"
import { type CommandCall, givenBack, lend, type PromptOwner, promptOwner } from "./command.ts"
import { compactConversation } from "./compact.ts"
import { createContextLimit } from "./context-limit.ts"
import type { Conversation } from "./conversation.ts"
import { conclude, type Ending, withOthers } from "./ending.ts"
import type { PromptOptions } from "./handle.ts"
import { runLoop } from "./loop.ts"
import { addToPrompt, postContinuation, postPrompt } from "./post-message.ts"
import type { Recorder } from "./recorder.ts"
import { createSampler } from "./sample-model.ts"
import type { SessionEngine } from "./session-engine.ts"
import { createSessionAgent, type SessionRun } from "./session-run.ts"
import { requireAnswer } from "./structured-answer.ts"
import { createSpawner } from "./subagent.ts"

/** Text from the user. `input` is set if the text waited in the queue. */
export interface Said {
  text: string
  files: readonly PromptFile[]
  command?: CommandCall | undefined
  input?: Input
}

/** A prompt from the user. */
export interface Prompt {
  /** The prompt's texts. An empty list continues an unfinished run. A text that calls a command is the only text. */
  said: readonly Said[]
  options: PromptOptions
  /** Signal that interrupts the run when aborted. */
  signal: AbortSignal
  /**
   * Returns the time in milliseconds since the start of the run, excluding the time spent waiting for the user.
   */
  workMs(): number
}

/**
 * Runs a prompt to its end. A command's agent and model apply only to this prompt. Rejects if the user must fix a
 * problem before the model can be called, or if the store cannot write.
 */
export async function runPrompt(conversation: Conversation, { options, ...prompt }: Prompt): Promise<Ending> {
  await conversation.engine.tenants?.assertNotExhausted(conversation.session)
  const { model: chosen } = options
  const owner =
    prompt.said.length === 0
      ? await continuedOwner(conversation)
      : promptOwner({ command: prompt.said[0]?.command, model: chosen }, conversation.engine)
  conversation.session = lend(conversation.session, owner, { keepModel: options.model !== undefined })
  try {
    return await answer(conversation, { ...prompt, options: { ...options, ...owner } })
  } finally {
    if (conversation.session.lent) {
      conversation.session = givenBack(conversation.session)
      await conversation.recorder.session(conversation.session)
    }
  }
}

/** Returns the agent and model of the latest prompt, if they differ from the session's. */
async function continuedOwner({ session, history }: Conversation): Promise<PromptOwner> {
  const last = (await history()).findLast(({ message }) => message.role === "user")?.message
  if (last?.role !== "user") return {}
  const { agent, model } = last
  const isOwn = model.providerID === session.model?.providerID && model.modelID === session.model.modelID
  return {
    ...(agent !== session.agent && { agent }),
    ...(!isOwn && { model: `${model.providerID}/${model.modelID}` }),
  }
}

async function answer(
  conversation: Conversation,
  { said, options, signal, workMs }: Prompt & { options: PromptOwner },
): Promise<Ending> {
  const { engine } = conversation
  const { bus, plugins } = engine
  const history = await conversation.history()
  await engine.definitions.follow()
  const { agent, model } = await choose(conversation, options)
  const budget = budgetOf(options, agent, model)
  assertCountable({ maxCost: engine.tenants?.costLimit(conversation.session) }, model.info)
  const demand = options.outputSchema && requireAnswer(options.outputSchema, model.info)
  await engine.policies.load(conversation.session)
  const notes = demand ? [demand.instructions] : []
  const posted: { said?: Said; user: UserMessage }[] = []
  if (said.length === 0) posted.push({ user: await postContinuation(conversation, { agent, model }) })
  for (const each of said) {
    // An interrupt before the delivery leaves the input in the queue.
    if (each.input) throwIfAborted(signal)
    const post = { ...each, notes, agent, model, plugins, signal }
    posted.push({ said: each, user: await postPrompt(conversation, post) })
  }
  const [first, user] = [posted[0]?.user, posted.at(-1)?.user]
  if (!first || !user) throw new Error("The prompt is empty. Pass some text.")

  const given = { conversation, history, agent, model, budget, demand, options, signal }
  const run = await createRun({ ...given, user: first })
  const active = await createSessionAgent(agent, run)
  const refused: Refusal[] = []
  for (const { said: each, user: to } of posted)
    if (each) refused.push(...(await addToPrompt(active, { ...each, subagent: options.subagent, user: to })))
  const result = await runLoop(active, user)
  const end = conclude({ bus, sessionID: run.session.id, workMs }, result, {
    past: history,
    first,
    spent: run.spending.besides(),
    answer: demand?.answer,
  })
  return withOthers(end, run.spending.children, refused)
}

/** Creates the run after the user's message is posted. Some of its capabilities refer to the run itself. */
async function createRun({
  conversation,
  agent,
  user,
  options,
  ...given
}: Pick<SessionRun, "conversation" | "history" | "model" | "budget" | "demand" | "signal"> & {
  agent: Agent
  user: UserMessage
  options: PromptOptions
}): Promise<SessionRun> {
  const { engine, recorder } = conversation
  const { history, model, signal } = given
  const { id: sessionID } = conversation.session
  const contextLimit = createContextLimit({
    history,
    info: model.info,
    compact: () => compactConversation(conversation, { agent, model, auto: true, signal }),
    warn: (fill) => engine.bus.publish({ type: "context.filling", sessionID, ...fill }),
  })
  const spending = createSpending({
    budget: given.budget,
    shared: options.shared,
    steps: () => stepsSince(user, history),
    summaries: () => contextLimit.spent,
  })
  // An agent keeps its definition during the whole prompt, even if its file is removed.
  const agents = new Map([[agent.name, agent]])
  const run: SessionRun = {
    ...given,
    engine,
    conversation,
    get session() {
      return conversation.session
    },
    files: conversation.files,
    instructions: conversation.instructions,
    changes: await changesOfTurn(conversation),
    todo: createTodoCapability(sessionID, engine.store, recorder),
    planFile: engine.planFile(conversation.session),
    caller: options.caller,
    extra: options.extra,
    shared: options.shared,
    spending,
    contextLimit,
    spawn: (request, call) => spawn(request, call),
    sample: (request) => sample(request),
    async activate(name) {
      await engine.definitions.follow()
      const named = agents.get(name) ?? engine.agent(name)
      agents.set(name, named)
      return createSessionAgent(named, run)
    },
  }
  const spawn = createSpawner(run)
  const sample = createSampler(run)
  return run
}

/** Chooses the agent and model for a prompt. Throws `UsageError` if one of them does not exist. */
async function choose(
  conversation: Conversation,
  options: PromptOptions & PromptOwner,
): Promise<{ agent: Agent; model: Model }> {
  const { engine, session } = conversation
  const chosen = { ...session, agent: options.agent ?? session.agent }
  const agent = engine.agent(chosen.agent)
  if (options.model !== undefined) chosen.model = parseModelName(options.model)
  const model = await engine.model(chosen, agent)
  // Changes the session only after both the agent and the model are found. A prompt that cannot start leaves the
  // session unchanged.
  conversation.session = { ...conversation.session, agent: chosen.agent }
  return { agent, model }
}

/**
 * Returns the limits for a prompt. Throws `UsageError` if the prompt has a cost limit but the model's prices are
 * unknown.
 */
function budgetOf(options: PromptOptions, agent: Agent, model: Model): Budget {
  const { maxSteps = agent.steps, maxTokens, maxCost } = options
  const budget: Budget = { maxSteps, maxTokens, maxCost }
  assertCountable(budget, model.info)
  return budget
}

/** Returns the model's messages since the user's message. */
function stepsSince(user: UserMessage, history: readonly MessageWithParts[]): AssistantMessage[] {
  return history.flatMap(({ message }) =>
    message.role === "assistant" && message.id > user.id ? [message] : [],
  )
}

/** Returns access to a session's to-do list. Changes to the list are stored and announced. */
function createTodoCapability(sessionID: string, store: Store, recorder: Recorder): TodoCapability {
  return {
    read: () => store.todos(sessionID),
    write: (todos) => recorder.todos(todos),
  }
}

/**
 * Returns the record of the current turn's file changes, and creates it if necessary. A subagent's changes belong to
 * the turn of its root session. Stores a new record with the last message in the conversation, which is the message
 * that started the turn.
 */
async function changesOfTurn({
  engine,
  session,
  recorder,
  history,
}: Conversation): Promise<ChangeCapability | undefined> {
  const { lineage, turns, watchChanges } = engine
  const root = lineage.rootOf(session.id)
  const [turn, begun] = [turns.get(root), (await history()).at(-1)]
  if (turn || !begun) return turn
  const patch = createTurnPatch(begun)
  const changes = watchChanges({
    save: (record) => recorder.write({ parts: [patch(record)] }),
    note: (record) => recorder.note({ parts: [patch(record)] }),
  })
  turns.set(root, changes)
  return changes
}

/** Ends the turn after a run of a root session. A subagent's run does not end the turn. */
export function endTurn(sessionID: string, { lineage, turns }: SessionEngine): void {
  if (lineage.rootOf(sessionID) === sessionID) turns.delete(sessionID)
}

/**
 * Returns a function that writes the file changes of a turn to one part of the message that started the turn. The first
 * change creates the part.
 */
function createTurnPatch({ message, parts }: MessageWithParts): (record: TurnRecord) => PatchPart {
  let patch: PatchPart | undefined
  return ({ files, unseen }) => {
    if (!patch) {
      const { sessionID, id: messageID } = message
      patch = { id: newId("prt"), sessionID, messageID, type: "patch", files }
      parts.push(patch)
    }
    patch.files = files
    if (unseen.length > 0) patch.unseen = unseen
    return { ...patch }
  }
}
