import { basename } from "node:path"
import { pathToFileURL } from "node:url"
import {
  type Client,
  type ClientCapabilities,
  type CreateMessageRequestParams,
  type CreateMessageResult,
  type ElicitRequestFormParams,
  type ElicitResult,
  ProtocolError,
  ProtocolErrorCode,
} from "@modelcontextprotocol/client"
import { errorMessage } from "../../util/errors.ts"

/** Answers the requests that a server makes during a call. */
export interface RequestAnswers {
  elicit(form: ElicitRequestFormParams, signal: AbortSignal): Promise<ElicitResult>
  sample(request: CreateMessageRequestParams, signal: AbortSignal): Promise<CreateMessageResult>
}

/** Client capabilities: the requests that a server may make. */
export const requestCapabilities: ClientCapabilities = { elicitation: { form: {} }, sampling: {}, roots: {} }

/**
 * Answers the server's requests. `roots/list` returns the worktree. `answers` returns the handler for forms and
 * sampling, or undefined if the request cannot be assigned to a call. In that case forms are declined and sampling
 * fails.
 */
export function answerRequests(
  client: Client,
  { worktree, answers }: { worktree: string; answers(): RequestAnswers | undefined },
): void {
  client.setRequestHandler("roots/list", () => ({
    roots: [{ uri: pathToFileURL(worktree).href, name: basename(worktree) }],
  }))
  client.setRequestHandler("elicitation/create", async ({ params }, ctx) => {
    const current = params.mode === "url" ? undefined : answers()
    if (params.mode === "url" || !current) return { action: "decline" }
    return await asProtocolError(() => current.elicit(params, ctx.mcpReq.signal))
  })
  client.setRequestHandler("sampling/createMessage", async ({ params }, ctx) => {
    const current = answers()
    if (!current) throw invalidRequest("Sampling is possible only during a call.")
    return await asProtocolError(() => current.sample(params, ctx.mcpReq.signal))
  })
}

async function asProtocolError<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw invalidRequest(errorMessage(error))
  }
}

function invalidRequest(message: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidRequest, message)
}
