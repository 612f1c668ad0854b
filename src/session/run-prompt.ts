import type { Agent } from "../agent/agent.ts"
import { type Model, parseModelName } from "../model/model.ts"
import type { AssistantMessage, MessageWithParts, UserMessage } from "../schema/message.ts"
import { demandAnswer } from "./answer-demand.ts"
import { assertCountable, type Budget } from "./budget.ts"
import { compactConversation } from "./compact-conversation.ts"
import { createContextRoom } from "./context-room.ts"
import type { Conversation } from "./conversation.ts"
import { conclude, type Ending, withOthers } from "./ending.ts"
import type { PromptOptions } from "./handle.ts"
import { runLoop } from "./loop.ts"
import { postNote, postPrompt } from "./post-message.ts"
import { addToPrompt } from "./prompt-additions.ts"
import { givenBack, lend, type PromptOwner, promptOwner } from "./run-command.ts"
import type { SessionServices } from "./services.ts"
import { createSpending } from "./spending.ts"
import { createSpawner } from "./subagent.ts"
import { createTodoCapability } from "./todo.ts"
import { changesOfTurn } from "./turn-patch.ts"
import { createWorker, type RunContext, type Worker } from "./worker.ts"

/** What a person asks, and the signal that interrupts it. */
export interface Prompt {
  text: string
  options: PromptOptions
  signal: AbortSignal
}

/**
 * Goes on with the conversation by one prompt, to its end. A command's agent and model are those of its prompt alone.
 * Rejects for what has to be mended before a model can be asked, and when the store refuses to write.
 */
export async function runPrompt(
  conversation: Conversation,
  services: SessionServices,
  { text, options, signal }: Prompt,
): Promise<Ending> {
  await conversation.catchUp()
  const owner = promptOwner(options, services)
  conversation.session = lend(conversation.session, owner, { keepModel: options.model !== undefined })
  try {
    return await answer(conversation, services, { text, options: { ...options, ...owner }, signal })
  } finally {
    if (conversation.session.lent) {
      conversation.session = givenBack(conversation.session)
      await conversation.recorder.session(conversation.session)
    }
  }
}

async function answer(
  conversation: Conversation,
  services: SessionServices,
  { text, options, signal }: Prompt & { options: PromptOwner },
): Promise<Ending> {
  const { recorder } = conversation
  const { bus, store, plugins } = services
  const started = Date.now()
  const history = await conversation.history()
  const { id: sessionID } = conversation.session
  await services.definitions.follow()
  const { agent, model } = await choose(conversation, services, options)
  const budget = budgetOf(options, agent, model)
  const demand = options.outputSchema && demandAnswer(options.outputSchema, model.info)
  await services.loadPolicy(conversation.session)
  const notes = demand ? [demand.instructions] : []
  const post = { text, files: options.files ?? [], notes, agent, model, plugins, signal }
  const user = await postPrompt(conversation, post)

  const room = createContextRoom({
    history,
    info: model.info,
    compact: () => compactConversation(conversation, services, { agent, model, auto: true, signal }),
    warn: (fill) => bus.publish({ type: "context.filling", sessionID, ...fill }),
  })
  const spending = createSpending({
    budget,
    shared: options.shared,
    steps: () => stepsSince(user, history),
    summaries: () => room.spent,
  })
  const context: RunContext = {
    session: () => conversation.session,
    model,
    toPrompt: (input) => conversation.toPrompt(input),
    files: conversation.files,
    instructions: conversation.instructions,
    changes: await changesOfTurn(conversation, services),
    todo: createTodoCapability(sessionID, store, recorder),
    spawn: createSpawner({
      parent: () => conversation.session,
      model: model.info.ref,
      bus,
      services: services.subagents,
      spending,
    }),
    rest: spending.rest,
    onSpent: spending.sampled,
    signal,
    ...(demand?.tool === undefined ? {} : { tool: demand.tool }),
    ...(options.caller === undefined ? {} : { caller: options.caller }),
  }
  // Who works on the prompt stays as it was when that began, also where its file is gone by now.
  const workers = new Map([[agent.name, agent]])
  const agentNamed = (name: string) => {
    const named = workers.get(name) ?? services.agent(name)
    workers.set(name, named)
    return named
  }
  async function workAs(name: string): Promise<Worker> {
    await services.definitions.follow()
    return await createWorker(agentNamed(name), context, services)
  }
  const worker = await createWorker(agent, context, services)
  const { command, subagent } = options
  const refused = await addToPrompt(conversation, services, { text, command, subagent, user, worker })

  const tell = (note: string) => {
    return postNote(conversation, { text: note, agent: agentNamed(conversation.session.agent), model })
  }
  const result = await runLoop({
    session: conversation.session,
    worker,
    workAs,
    ...(demand === undefined ? {} : { demand }),
    tell,
    async handOver({ agent, message }) {
      // From now on, also in later prompts, the session is the other agent's.
      conversation.session = { ...conversation.session, agent }
      await recorder.session(conversation.session)
      return tell(message)
    },
    model,
    user,
    history,
    budget,
    shared: options.shared,
    spentElsewhere: spending.elsewhere,
    limits: services.streamLimits,
    retry: services.retry,
    recorder,
    room,
    plugins,
    signal,
  })
  const end = conclude({ bus, sessionID, started }, result, {
    past: history,
    spent: spending.besides(),
    answer: demand?.answer,
  })
  return withOthers(end, spending.children, refused)
}

/** Who works, by which model. Throws `UsageError` for one that there is not. */
async function choose(
  conversation: Conversation,
  services: SessionServices,
  options: PromptOptions & PromptOwner,
): Promise<{ agent: Agent; model: Model }> {
  const { session } = conversation
  const chosen = { ...session, agent: options.agent ?? session.agent }
  const agent = services.agent(chosen.agent)
  const named = options.model === undefined ? {} : { model: parseModelName(options.model) }
  const model = await services.model({ ...chosen, ...named }, agent)
  // Once both are there: a prompt that cannot begin leaves the session as it was.
  conversation.session = { ...conversation.session, agent: chosen.agent }
  return { agent, model }
}

/** Throws `UsageError` for a limit of cost where nobody knows what the model costs. */
function budgetOf(options: PromptOptions, agent: Agent, model: Model): Budget {
  const { maxSteps = agent.steps, maxTokens, maxCost } = options
  const budget: Budget = {
    maxSteps,
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(maxCost === undefined ? {} : { maxCost }),
  }
  assertCountable(budget, model.info)
  return budget
}

/** The steps that answer a prompt, so far. */
function stepsSince(user: UserMessage, history: readonly MessageWithParts[]): AssistantMessage[] {
  return history.flatMap(({ message }) =>
    message.role === "assistant" && message.id > user.id ? [message] : [],
  )
}
