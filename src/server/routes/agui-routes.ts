import type * as z from "zod"
import {
  type AguiEvent,
  AguiRequest,
  type AguiTurn,
  createAguiStream,
  knownCalls,
  readAguiTurn,
} from "../agui-stream.ts"
import type { ServerContext } from "../context.ts"
import { ServerError } from "../errors.ts"
import { itemsOf, type MappedSession, mappedStream, respondWithItems } from "../mapped-stream.ts"
import { body, createRouter, route, sessionParams, tenantErrors } from "./route.ts"

/** Creates the route for AG-UI clients. */
export function aguiRoutes(context: ServerContext) {
  const routes = createRouter()
  routes.openapi(
    route({
      method: "post",
      path: "/session/{id}/agui",
      summary: "Run with AG-UI",
      description:
        "Responds with a stream of AG-UI 1.0 events. With `resume`, the request answers the interrupts from the previous run. Without `resume`, the last message must be from the user, and is sent to the session. Permission requests and questions end the run with the outcome `interrupt`.",
      scope: "run",
      errors: ["input.id", "input.empty", "input.conflict", "request.unknown", "usage", ...tenantErrors],
      request: { params: sessionParams, body: body(AguiRequest) },
      responses: mappedStream,
    }),
    async (c) => {
      context.assertStartsWork(c.req.valid("param").id, c.get("token").tenant)
      const request = c.req.valid("json")
      const turn = readAguiTurn(request)
      if (!turn)
        throw new ServerError(
          "The last message must be from the user, or `resume` must contain valid answers.",
          {
            code: "request.invalid",
          },
        )
      return respondWithItems(context, c, { begin: (session) => openRun(session, request, turn) })
    },
  )
  return routes
}

/** Sends the user's text, or the answers to interrupts. Returns the AG-UI events of the run. */
async function openRun(
  { tackle, handle, waiting, reply, follow }: MappedSession,
  request: z.infer<typeof AguiRequest>,
  turn: AguiTurn,
): Promise<AsyncGenerator<AguiEvent>> {
  const { store } = tackle
  const run = { threadId: request.threadId, runId: request.runId }
  const known = knownCalls(request)
  const after =
    turn.kind === "answer"
      ? Math.min(...turn.answers.map((answer) => answer.after))
      : await store.sequence(handle.id)
  // The stream is opened before the text is sent, so that it includes all events.
  const events = follow(after)
  try {
    if (turn.kind === "send") {
      const { id, text } = turn
      const { state } = await handle.send(text, { id, delivery: "queue" })
      // The same text was sent earlier, and its run has ended.
      if (state !== "pending" && (await tackle.sessions.status(handle.id)) === "idle")
        return ended(events, run)
      const inputID = state === "pending" ? id : undefined
      const mapper = createAguiStream({ run, known, inputID, after, waiting })
      return itemsOf(mapper, events, { after, present: after })
    }
    const status = await tackle.sessions.status(handle.id)
    await reply(turn.answers)
    if (status === "idle") return ended(events, run)
    const mapper = createAguiStream({ run, known, after, waiting })
    return itemsOf(mapper, events, { after, present: await store.sequence(handle.id) })
  } catch (error) {
    await events.return?.()
    throw error
  }
}

/** Closes the events and yields a run without content. */
async function* ended(
  events: AsyncIterableIterator<unknown>,
  run: { threadId: string; runId: string },
): AsyncGenerator<AguiEvent> {
  await events.return?.()
  yield { type: "RUN_STARTED", ...run }
  yield { type: "RUN_FINISHED", ...run, outcome: { type: "success" } }
}
