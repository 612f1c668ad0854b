import type { Agent } from "../agent/agent.ts"
import type { Tackle } from "../engine/tackle.ts"
import type { TackleEvent } from "../event/events.ts"
import { type ModelInfo, modelName } from "../model/model.ts"
import type { Message, MessageError, MessageWithParts } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import type { Command } from "../session/command.ts"
import type { FileDiff } from "../session/session-diff.ts"

/** An object in the format of OpenCode's API. */
export type OpenCodeObject = Record<string, unknown>

/** An event in the format of OpenCode's API. */
export interface OpenCodeEvent {
  id: string
  type: string
  properties: OpenCodeObject
}

/** Returns a session in OpenCode's format. `version` is the server's version. */
export function toOpenCodeSession(session: Session, version: string): OpenCodeObject {
  const { id, title, directory, worktree, parentID, agent, model, time, undone = [] } = session
  const last = undone.at(-1)
  return {
    id,
    slug: id,
    projectID: worktree,
    directory,
    parentID,
    title,
    agent,
    model: model && { id: model.modelID, providerID: model.providerID },
    version,
    time,
    revert: last === undefined ? undefined : { messageID: last },
  }
}

/** Returns an agent in OpenCode's format. The rules are those of the user's config. */
export function toOpenCodeAgent(agent: Agent): OpenCodeObject {
  const { name, description, mode, prompt, model, temperature, steps, permission } = agent
  const rules = permission.map(({ permission, pattern, action }) => ({ permission, pattern, action }))
  return { ...{ name, description, mode, prompt, model, temperature, steps }, permission: rules, options: {} }
}

/** Returns a command in OpenCode's format. */
export function toOpenCodeCommand({ name, description, template, origin }: Command): OpenCodeObject {
  return { name, description, template, source: origin ?? "command", hints: [] }
}

/** Returns a changed file in OpenCode's format. */
export function toOpenCodeDiff({ path, kind, diff = "" }: FileDiff, worktree: string): OpenCodeObject {
  const count = (sign: string) =>
    diff.split("\n").filter((line) => line.startsWith(sign) && !line.startsWith(sign.repeat(3))).length
  const file = path.startsWith(`${worktree}/`) ? path.slice(worktree.length + 1) : path
  const status = kind === "changed" ? "modified" : kind
  return { file, status, patch: diff, additions: count("+"), deletions: count("-") }
}

/** Returns a project's agents and commands as OpenCode's config contains them. */
export function toOpenCodeConfig({ agents, commands }: Pick<Tackle, "agents" | "commands">): OpenCodeObject {
  const agent = [...agents.values()].map(({ name, description, mode, model }) => [
    name,
    { description, mode, model: model && modelName(model) },
  ])
  const command = commands().map(({ name, description, template }) => [name, { description, template }])
  return { agent: Object.fromEntries(agent), command: Object.fromEntries(command) }
}

/** Returns models by provider in OpenCode's format, without keys. The default of a provider is its first model. */
export function toOpenCodeProviders(models: readonly ModelInfo[]): OpenCodeObject {
  const providers = [...Map.groupBy(models, ({ ref }) => ref.providerID)].map(([id, own]) => ({
    id,
    name: id,
    source: "config",
    env: [],
    options: {},
    models: Object.fromEntries(own.map((model) => [model.ref.modelID, toOpenCodeModel(model)])),
  }))
  const first = models.map(({ ref }) => [ref.providerID, ref.modelID] as const).toReversed()
  return { providers, default: Object.fromEntries(first) }
}

function toOpenCodeModel({
  ref,
  name,
  toolCall,
  limit,
  cost,
  attachment = false,
  server,
}: ModelInfo): OpenCodeObject {
  const media = (isAccepted: boolean) => ({
    ...{ text: true, image: isAccepted, pdf: isAccepted, audio: false, video: false },
  })
  return {
    ...{ id: ref.modelID, providerID: ref.providerID, name },
    api: { id: ref.modelID, url: server?.host ?? "", npm: server?.package ?? "" },
    capabilities: {
      ...{ temperature: true, reasoning: false, attachment, toolcall: toolCall, interleaved: false },
      ...{ input: media(attachment), output: media(false) },
    },
    cost: {
      ...{ input: cost?.input ?? 0, output: cost?.output ?? 0 },
      cache: { read: cost?.cacheRead ?? 0, write: cost?.cacheWrite ?? 0 },
    },
    limit: { context: limit.context ?? 0, output: limit.output ?? 0 },
    ...{ status: "active", options: {}, headers: {}, release_date: "" },
  }
}

/** Returns a message in OpenCode's format. */
function toOpenCodeMessage(message: Message): OpenCodeObject {
  if (message.role === "user") return { ...message }
  const { model, error, ...rest } = message
  return {
    ...rest,
    providerID: model.providerID,
    modelID: model.modelID,
    mode: message.agent,
    error: error && toOpenCodeError(error),
  }
}

/** Returns a message with its parts in OpenCode's format. */
export function toOpenCodeEntry({ message, parts }: MessageWithParts): OpenCodeObject {
  return { info: toOpenCodeMessage(message), parts: parts.map(toOpenCodePart) }
}

/** Returns a part in OpenCode's format. Most kinds of parts have the same format in Tackle. */
function toOpenCodePart(part: Part): OpenCodeObject {
  switch (part.type) {
    case "patch":
      return { ...part, hash: part.id, files: part.files.map(({ path }) => path) }
    case "retry":
      return { ...part, error: { name: "APIError", data: { message: part.error, isRetryable: true } } }
    default:
      return { ...part }
  }
}

const errorNames: Partial<Record<MessageError["name"], string>> = {
  aborted: "MessageAbortedError",
  auth: "ProviderAuthError",
  "context-overflow": "ContextOverflowError",
  incomplete: "MessageOutputLengthError",
  output: "StructuredOutputError",
  provider: "APIError",
}

function toOpenCodeError({ name, message, status }: { name: string; message: string; status?: number }) {
  const known = Object.hasOwn(errorNames, name) ? errorNames[name as MessageError["name"]] : undefined
  return { name: known ?? "UnknownError", data: { message, statusCode: status, isRetryable: false } }
}

/** Creates a function that converts a server's events. The function omits events that OpenCode does not have. */
export function createOpenCodeEvents(version: string): (event: TackleEvent) => OpenCodeEvent[] {
  let count = 0
  /**
   * Message IDs of the parts that are being streamed, keyed by part ID, because OpenCode's deltas also contain the
   * message ID, but Tackle's contain only the part ID.
   */
  const messages = new Map<string, string>()

  function converted(type: string, properties: OpenCodeObject): OpenCodeEvent {
    count += 1
    return { id: `evt_${count}`, type, properties }
  }

  return (event) => {
    const { sessionID } = event
    switch (event.type) {
      case "session.created":
      case "session.updated":
      case "session.deleted":
        return [converted(event.type, { sessionID, info: toOpenCodeSession(event.session, version) })]
      case "session.error":
        return [converted(event.type, { sessionID, error: toOpenCodeError(event.error) })]
      case "message.created":
      case "message.updated": {
        const { message } = event
        const info = converted("message.updated", { sessionID, info: toOpenCodeMessage(message) })
        const begins = event.type === "message.created" && message.role === "assistant"
        return begins ? [converted("session.status", { sessionID, status: { type: "busy" } }), info] : [info]
      }
      case "part.updated": {
        const { part, time } = event
        const isStreamed = part.type === "text" || part.type === "reasoning"
        if (isStreamed && part.time?.end === undefined) messages.set(part.id, part.messageID)
        else messages.delete(part.id)
        const updated = converted("message.part.updated", { sessionID, part: toOpenCodePart(part), time })
        const compacted = part.type === "compaction" ? [converted("session.compacted", { sessionID })] : []
        return [updated, ...compacted]
      }
      case "part.removed": {
        const { messageID, partID } = event
        messages.delete(partID)
        return [converted("message.part.removed", { sessionID, messageID, partID })]
      }
      case "part.delta": {
        const { partID, field, delta } = event
        const messageID = messages.get(partID)
        if (messageID === undefined) return []
        return [converted("message.part.delta", { sessionID, messageID, partID, field, delta })]
      }
      case "permission.asked":
      case "question.asked":
        return [converted(event.type, { ...event.request })]
      case "permission.replied":
        return [converted(event.type, { sessionID, requestID: event.requestID, reply: event.reply })]
      case "question.replied":
        return [converted(event.type, { sessionID, requestID: event.requestID, answers: event.answers })]
      case "question.rejected":
        return [converted(event.type, { sessionID, requestID: event.requestID })]
      case "todo.updated":
        return [converted(event.type, { sessionID, todos: event.todos })]
      case "run.completed":
        return [
          converted("session.status", { sessionID, status: { type: "idle" } }),
          converted("session.idle", { sessionID }),
        ]
      default:
        return []
    }
  }
}
