import * as z from "zod"
import type { Tackle } from "../../engine/tackle.ts"
import type { Input, PromptFile } from "../../schema/input.ts"
import { type ServerContext, sessionOf, statusOf, withSession } from "../context.ts"
import { notFound } from "../errors.ts"
import { eventResponses } from "../schemas/event-schemas.ts"
import { type InputParts, inputBodies, inputResponses } from "../schemas/input-schemas.ts"
import { page } from "../schemas/named.ts"
import { Status } from "../schemas/session-schemas.ts"
import { body, createRouter, json, numberIn, route, sessionParams, tenantErrors } from "./route.ts"

const inputParams = sessionParams.extend({
  inputID: z.string().openapi({ description: "Id of the input" }),
})

/** Creates the routes for the input queue and runs. */
export function inputRoutes(context: ServerContext) {
  const { engines, store } = context
  const routes = createRouter()

  routes.openapi(
    route({
      method: "post",
      path: "/session/{id}/input",
      summary: "Send a prompt",
      description:
        "Stores the input and starts a run if the session is idle. An input never answers a permission request or a question.",
      scope: "run",
      errors: ["input.id", "input.empty", "input.conflict", ...tenantErrors],
      request: { params: sessionParams, body: body(inputBodies.send) },
      responses: { 202: json(inputResponses.receipt, "Stored") },
    }),
    async (c) => {
      context.assertStartsWork(c.req.valid("param").id, c.get("token").tenant)
      const { id, delivery, text = "", parts = [] } = c.req.valid("json")
      const content = parts.length > 0 ? contentOf(parts) : { text, files: [] }
      const receipt = await withSession(context, c.req.valid("param").id, async (handle, tackle) => {
        const command = await commandIn(content.text, tackle, c.req.raw.signal)
        return handle.send(content.text, { id, delivery, files: content.files, command })
      })
      return c.json(receipt, 202)
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/session/{id}/input",
      summary: "List the pending inputs, by position",
      scope: "read",
      request: { params: sessionParams },
      responses: { 200: json(page(inputResponses.input)) },
    }),
    async (c) => {
      const { id } = await sessionOf(context, c.req.valid("param").id)
      return c.json({ items: await store.inputs(id) }, 200)
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/session/{id}/input/{inputID}",
      summary: "Read an input in any state",
      scope: "read",
      errors: ["input.unknown"],
      request: { params: inputParams },
      responses: { 200: json(inputResponses.input) },
    }),
    async (c) => {
      const { id, inputID } = c.req.valid("param")
      await sessionOf(context, id)
      let found: Input | undefined
      await store.updateInputs(id, inputID, ({ named }) => {
        found = named
        return []
      })
      if (!found) throw notFound("input", inputID)
      return c.json(found, 200)
    },
  )

  routes.openapi(
    route({
      method: "patch",
      path: "/session/{id}/input/{inputID}",
      summary: "Edit, move or hold a pending input",
      scope: "run",
      errors: ["input.unknown", "input.empty", "input.ended"],
      request: { params: inputParams, body: body(inputBodies.update) },
      responses: { 200: json(inputResponses.input) },
    }),
    async (c) => {
      const { id, inputID } = c.req.valid("param")
      const change = c.req.valid("json")
      const input = await withSession(context, id, async (handle, tackle) => {
        const command = await commandIn(change.text ?? "", tackle, c.req.raw.signal)
        return handle.inputs.edit(inputID, { ...change, command })
      })
      return c.json(input, 200)
    },
  )

  routes.openapi(
    route({
      method: "delete",
      path: "/session/{id}/input/{inputID}",
      summary: "Withdraw a pending input",
      scope: "run",
      errors: ["input.unknown", "input.ended"],
      request: { params: inputParams },
      responses: { 200: json(inputResponses.input) },
    }),
    async (c) => {
      const { id, inputID } = c.req.valid("param")
      return c.json(await withSession(context, id, (handle) => handle.inputs.withdraw(inputID)), 200)
    },
  )

  routes.openapi(
    route({
      method: "post",
      path: "/session/{id}/resume",
      summary: "Continue the delivery of pending inputs after an interrupt",
      scope: "run",
      request: { params: sessionParams },
      responses: { 204: { description: "Continued" } },
    }),
    async (c) => {
      context.assertStartsWork()
      await withSession(context, c.req.valid("param").id, (handle) => handle.inputs.resume())
      return c.body(null, 204)
    },
  )

  routes.openapi(
    route({
      method: "post",
      path: "/session/{id}/interrupt",
      summary: "Stop the run",
      description:
        "Pauses the queue until the next input or `POST /session/{id}/resume`. Also stops a run in another process. Responds when the run has ended, or when its process is no longer alive.",
      scope: "run",
      request: {
        params: sessionParams,
        body: { content: { "application/json": { schema: inputBodies.interrupt } } },
      },
      responses: {
        200: json(z.object({ withdrawn: z.array(inputResponses.input) })),
      },
    }),
    async (c) => {
      const { id } = c.req.valid("param")
      const { clear } = c.req.valid("json")
      const withdrawn = await withSession(context, id, (handle) => handle.interrupt({ clear }))
      return c.json({ withdrawn }, 200)
    },
  )

  routes.openapi(
    route({
      method: "post",
      path: "/session/{id}/wait",
      summary: "Wait until the session is idle",
      description:
        "Responds when the session is idle in all processes, or after the timeout. If the session is idle, `run` is the end of the latest run that this server has seen, if any.",
      scope: "read",
      request: {
        params: sessionParams,
        query: z.strictObject({
          timeout: numberIn({ min: 0, max: 86_400, integer: false })
            .optional()
            .openapi({ description: "Maximum time to wait, in seconds. Default: no limit" }),
        }),
      },
      responses: { 200: json(z.object({ status: Status, run: eventResponses.end.optional() })) },
    }),
    async (c) => {
      const { id } = c.req.valid("param")
      const { timeout } = c.req.valid("query")
      const late = new AbortController()
      const timer = timeout === undefined ? undefined : setTimeout(() => late.abort(), timeout * 1000)
      const gone = c.req.raw.signal
      try {
        const run = await withSession(context, id, (handle) =>
          handle.wait({ signal: AbortSignal.any([gone, late.signal]) }),
        )
        return c.json({ status: "idle" as const, run }, 200)
      } catch (error) {
        if (!late.signal.aborted) throw error
        const { directory } = await sessionOf(context, id)
        return c.json({ status: await statusOf(store, id, engines.find(directory)) }, 200)
      } finally {
        clearTimeout(timer)
      }
    },
  )

  return routes
}

/**
 * Returns the command call if the text starts with `/` and a command name, as in the terminal, or undefined for other
 * text.
 */
async function commandIn(text: string, tackle: Tackle, signal: AbortSignal) {
  if (!text.startsWith("/")) return undefined
  const found = await tackle.readCommand(text, { signal })
  return "call" in found ? found.call : undefined
}

function contentOf(parts: InputParts): { text: string; files: PromptFile[] } {
  const texts = parts.flatMap((part) => (part.type === "text" ? part.text : []))
  const files = parts.flatMap((part) =>
    part.type === "file" ? { mime: part.mime, url: part.url, filename: part.filename } : [],
  )
  return { text: texts.join("\n\n"), files }
}
