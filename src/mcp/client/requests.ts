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

/** Answers what a server asks while it works on a call. */
export interface CallAnswers {
  elicit(form: ElicitRequestFormParams, signal: AbortSignal): Promise<ElicitResult>
  sample(request: CreateMessageRequestParams, signal: AbortSignal): Promise<CreateMessageResult>
}

/** What a server may ask of us. */
export const requestCapabilities: ClientCapabilities = { elicitation: { form: {} }, sampling: {}, roots: {} }

/**
 * Answers what the server asks: where the project is, by itself; all else by `answering`, which gives nothing where no
 * call is under way that the request could belong to, or several of different sessions are. Forms are then declined.
 */
export function answerRequests(
  client: Client,
  { worktree, answering }: { worktree: string; answering(): CallAnswers | undefined },
): void {
  client.setRequestHandler("roots/list", () => ({
    roots: [{ uri: pathToFileURL(worktree).href, name: basename(worktree) }],
  }))
  client.setRequestHandler("elicitation/create", async ({ params }, ctx) => {
    const answers = params.mode === "url" ? undefined : answering()
    if (params.mode === "url" || !answers) return { action: "decline" }
    return await told(() => answers.elicit(params, ctx.mcpReq.signal))
  })
  client.setRequestHandler("sampling/createMessage", async ({ params }, ctx) => {
    const answers = answering()
    if (!answers) throw refusal("it was not asked for within a call")
    return await told(() => answers.sample(params, ctx.mcpReq.signal))
  })
}

/** The server is told why, in an error of the protocol. */
async function told<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw refusal(errorMessage(error))
  }
}

function refusal(why: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidRequest, why)
}
