import type { Agent } from "../agent/agent.ts"
import type { CallOutcome } from "../call/context.ts"
import type { TackleEvent } from "../event/events.ts"
import type { ModelInfo } from "../model/model.ts"
import type { Grant, PermissionReply } from "../schema/permission.ts"
import type { WaitingRequest } from "../schema/request.ts"
import type { ToolStateRunning } from "../schema/tool-state.ts"
import type { TackleApi } from "./api.ts"
import { type ApiRequest, apiPath, createConnection, orUnknown } from "./connection.ts"
import { abortReason, ClientError } from "./errors.ts"
import { followAll, streamItems } from "./event-stream.ts"
import { createSessions, type Page, type SessionsClient } from "./sessions.ts"

/** Options for {@link createClient}. */
export interface ClientOptions {
  /** URL of the server, such as `http://127.0.0.1:8486`. */
  url: string
  /** A token from the server's token file. Omit it in the server's web page if the page is logged in with a cookie. */
  token?: string
  /**
   * Absolute path of the project's directory on the server's machine. Required to create and import sessions and to
   * call tools. If undefined, project data, such as agents, commands, tools and grants, comes from the server's first
   * root, and `sessions.list` lists the sessions in all projects.
   */
  directory?: string
  /** Replacement for the global `fetch`. */
  fetch?: typeof fetch
  /**
   * Time in milliseconds for which the client repeats a request if the server does not respond or is busy. A request
   * that may have taken effect is sent again only if that is safe. In Node, the time starts again if a connection
   * breaks after at least one second. Default: 30,000. Event streams reconnect without a time limit.
   */
  retryMs?: number
  /**
   * Time in milliseconds without data after which an event stream reconnects. By default, the server sends data at
   * least every 15 seconds. Default: 45,000.
   */
  silenceMs?: number
  /** Called with the error that ended a subscription. By default, the error causes an unhandled rejection. */
  onProblem?(error: unknown): void
}

/** A client for a server. Has the part of the library's interface that {@link TackleApi} describes. */
export interface TackleClient extends TackleApi {
  readonly sessions: SessionsClient
}

/**
 * Creates a client for a server that was started with `tackle serve`. Does not connect before its first use. Methods
 * reject with a {@link ClientError}. A library error that the server reports keeps its code.
 */
export function createClient(options: ClientOptions): TackleClient {
  const { directory, retryMs = 30_000, silenceMs = 45_000, onProblem } = options
  const connection = createConnection({ ...options, retryMs })
  const { request } = connection

  /**
   * Returns the project's directory for requests that need it. Throws {@link ClientError} if the directory is not set.
   */
  function project(): { directory: string } {
    if (directory !== undefined) return { directory }
    throw new ClientError("This request needs a project directory. Pass `directory` to createClient.", {
      code: "client.directory",
    })
  }

  async function items<T>(path: string, query: ApiRequest["query"], signal?: AbortSignal): Promise<T[]> {
    return (await request<Page<T>>({ path, query, signal })).items
  }

  function ofProject<T>(path: string): Promise<T[]> {
    return items(path, { directory })
  }

  /** Returns the requests that wait for the user, or an empty list for an unknown session. */
  async function pending(sessionID?: string): Promise<WaitingRequest[]> {
    return (
      (await orUnknown("session.unknown", items<WaitingRequest>("/request", { session: sessionID }))) ?? []
    )
  }

  async function asked(sessionID?: string): Promise<TackleEvent[]> {
    return (await pending(sessionID)).map((item) => {
      const about = { time: Date.now(), sessionID: item.sessionID }
      if (item.type === "permission") return { type: "permission.asked", ...about, request: item }
      return { type: "question.asked", ...about, request: item }
    })
  }

  /** Sends a reply. Returns false if the request has already been answered, and undefined if the request is unknown. */
  async function answer(requestID: string, body: object): Promise<boolean | undefined> {
    const reply = request({ method: "POST", path: apiPath("request", requestID, "reply"), body })
    const applied = orUnknown(
      "request.answered",
      reply.then(() => true),
    ).then((done) => done ?? false)
    return orUnknown("request.unknown", applied)
  }

  /** Makes a call and reports its progress. If the connection breaks, the server cancels the call. */
  async function streamCall(
    call: ApiRequest,
    onProgress: (state: ToolStateRunning) => void,
  ): Promise<CallOutcome> {
    const { signal } = call
    await connection.streamsOpened()
    const response = await connection.open(call)
    for await (const event of streamItems<CallEvent>(response, { silenceMs, signal })) {
      if (event.type === "progress") onProgress(event.state)
      else return { callID: event.callID, state: event.state }
    }
    if (signal?.aborted) throw abortReason(signal)
    throw new ClientError(
      "The connection to the server closed before the call finished. The call may have taken effect, so check before you repeat it.",
      {
        code: "client.unreachable",
      },
    )
  }

  const sessions = createSessions({ connection, silenceMs, directory, project, asked })
  return {
    sessions,
    get agents() {
      return ofProject<Pick<Agent, "name" | "description" | "mode">>("/agent").then(
        (agents) => new Map(agents.map((agent) => [agent.name, agent])),
      )
    },
    subscribe(listener) {
      const leave = new AbortController()
      const following = followAll({ connection, silenceMs, signal: leave.signal, listener, asked })
      if (onProblem) following.catch(onProblem)
      return () => leave.abort()
    },
    async reply(requestID, reply) {
      const applied = await answer(requestID, replyBody(reply))
      if (applied === undefined) return "unknown"
      return applied ? "applied" : "already"
    },
    requests: pending,
    async pendingRequests(sessionID) {
      return (await pending(sessionID)).filter((item) => item.type === "permission")
    },
    questions: {
      reply: async (requestID, answers) => ((await answer(requestID, { answers })) ? "applied" : "unknown"),
      reject: async (requestID) => ((await answer(requestID, { dismissed: true })) ? "applied" : "unknown"),
      pending: async (sessionID) => (await pending(sessionID)).filter((item) => item.type === "question"),
    },
    findFiles: (query, { limit, signal } = {}) => items("/find/file", { directory, query, limit }, signal),
    async send(sessionID, text, options) {
      const session = await sessions.get(sessionID)
      return session?.send(text, options)
    },
    grants: () => ofProject("/grant"),
    async revoke(ids) {
      const known = new Set((await ofProject<Grant>("/grant")).map(({ id }) => id))
      const unknown = ids.find((id) => !known.has(id))
      if (unknown !== undefined)
        throw new ClientError(`Unknown grant "${unknown}".`, { code: "grant.unknown" })
      for (const id of ids)
        await request({ method: "DELETE", path: apiPath("grant", id), query: { directory } })
    },
    commands: () => ofProject("/command"),
    models: async () => (await ofProject<ListedModel>("/model")).map(modelInfo),
    async model(name) {
      const found = (await items<ListedModel>("/model", { directory, name })).find(
        ({ id }) => id === name.trim(),
      )
      if (!found)
        throw new ClientError(`The server did not return the model ${name}.`, { code: "client.response" })
      return modelInfo(found)
    },
    tools: ({ signal, ...scope } = {}) => items("/tool", { directory, ...scope }, signal),
    mcpServers: ({ signal } = {}) => items("/mcp", { directory }, signal),
    mcpPrompts: (signal) => items("/mcp/prompt", { directory }, signal),
    project: () => request({ path: "/project", query: { directory } }),
    callTool({ tool, input, agent, messageID, signal, onProgress }) {
      const path = apiPath("tool", tool, "call")
      const body = { ...project(), arguments: input, agent, messageID, stream: onProgress && true }
      const call: ApiRequest = { method: "POST", path, body, signal }
      return onProgress ? streamCall(call, onProgress) : request(call)
    },
  }
}

type ListedModel = { id: string } & Pick<ModelInfo, "name" | "limit">

function modelInfo({ id, ...model }: ListedModel): Pick<ModelInfo, "ref" | "name" | "limit"> {
  const slash = id.indexOf("/")
  return { ref: { providerID: id.slice(0, slash), modelID: id.slice(slash + 1) }, ...model }
}

/** An event of a streamed call. The last event is the result. */
type CallEvent = { type: "progress"; state: ToolStateRunning } | (CallOutcome & { type: "result" })

/** Returns the body of a reply to a permission request. */
function replyBody(reply: PermissionReply): object {
  switch (reply.reply) {
    case "once":
      return { reply: "once" }
    case "always":
      return { reply: reply.scope ?? "session", pattern: reply.patterns }
    case "reject":
      return { reply: "reject", message: reply.message }
  }
}
