import * as z from "zod"
import type { Tackle } from "../../engine/tackle.ts"
import { modelName } from "../../model/model.ts"
import type { ToolStateRunning } from "../../schema/tool-state.ts"
import { within } from "../../util/abort.ts"
import { createChannel } from "../../util/channel.ts"
import type { ServerContext } from "../context.ts"
import { notFound, ServerError } from "../errors.ts"
import { eventStream } from "../event-stream.ts"
import { page, reference } from "../schemas/named.ts"
import { projectResponses, ToolCallBody } from "../schemas/project-schemas.ts"
import { respond } from "./event-routes.ts"
import { body, createRouter, directory, directoryErrors, json, numberIn, route } from "./route.ts"

const inProject = z.strictObject({ directory })

/** Time in milliseconds after which the response to a streamed call begins, so that no proxy times out. */
const streamStartMs = 500

type CallEvent = z.infer<typeof projectResponses.callEvent>

const callResponse = {
  description: "The result, or an event stream if `stream` is true",
  content: {
    "application/json": { schema: projectResponses.call },
    "text/event-stream": {
      schema: z.custom<string>().openapi({
        ...{ type: "string", contentMediaType: "application/json" },
        contentSchema: reference("CallEvent"),
      } as object),
    },
  },
}

/** Creates the routes for a project: its tools, agents, commands, models and files. */
export function projectRoutes(context: ServerContext) {
  const { engines } = context
  const routes = createRouter()

  routes.openapi(
    route({
      method: "get",
      path: "/root",
      summary: "List the directories whose projects are served",
      scope: "read",
      responses: { 200: json(page(z.object({ directory: z.string() }))) },
    }),
    (c) => c.json({ items: engines.roots.map((directory) => ({ directory })) }, 200),
  )

  routes.openapi(
    route({
      method: "get",
      path: "/tool",
      summary: "List the tools, with the reason if a tool is not offered",
      scope: "read",
      errors: [...directoryErrors, "agent.unknown"],
      request: {
        query: inProject.extend({
          agent: z.string().optional(),
          model: z.string().optional().openapi({ description: "As `provider/model`" }),
        }),
      },
      responses: { 200: json(page(projectResponses.tool)) },
    }),
    async (c) => {
      const { directory = engines.defaultDirectory, ...scope } = c.req.valid("query")
      const { signal } = c.req.raw
      const items = await engines.use(directory, (tackle) => tackle.tools({ ...scope, signal }))
      return c.json({ items }, 200)
    },
  )

  routes.openapi(
    route({
      method: "post",
      path: "/tool/{id}/call",
      summary: "Call a tool without a model",
      description:
        "The call passes through the same checks as a call by the model, and may wait for a reply to a permission request. With `stream`, the response consists of server-sent events: each `data` is a `CallEvent` as JSON. A `progress` event contains the state of the running call, and the last event is the `result`. The call is canceled when the client disconnects.",
      scope: "run",
      errors: [...directoryErrors, "tool.unknown", "agent.unknown"],
      request: {
        params: z.object({ id: z.string().openapi({ description: "Id of the tool" }) }),
        body: body(ToolCallBody),
      },
      responses: { 200: callResponse },
    }),
    async (c) => {
      context.assertStartsWork()
      const { id } = c.req.valid("param")
      const { directory, arguments: input, agent, messageID, stream } = c.req.valid("json")
      const call = { tool: id, input, agent, messageID, signal: c.req.raw.signal }
      if (stream) return respond(c, await streamCall(directory, call))
      return c.json(await resultOf(directory, call), 200)
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/project",
      summary: "Read a project's state",
      scope: "read",
      errors: directoryErrors,
      request: { query: inProject },
      responses: { 200: json(projectResponses.project) },
    }),
    async (c) => {
      const { directory = engines.defaultDirectory } = c.req.valid("query")
      return c.json(await engines.use(directory, (tackle) => tackle.project()), 200)
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/agent",
      summary: "List the agents",
      scope: "read",
      errors: directoryErrors,
      request: { query: inProject },
      responses: { 200: json(page(projectResponses.agent)) },
    }),
    async (c) => {
      const { directory = engines.defaultDirectory } = c.req.valid("query")
      const items = await engines.use(directory, async ({ agents }) =>
        [...agents.values()]
          .filter(({ hidden }) => !hidden)
          .map(({ name, description, mode, model, steps }) => ({
            name,
            description,
            mode,
            model: model && modelName(model),
            steps,
          })),
      )
      return c.json({ items }, 200)
    },
  )

  for (const [path, summary, isListed] of [
    ["/command", "List the commands for prompts that start with `/`", () => true],
    ["/skill", "List the skills", (origin?: string) => origin === "skill"],
  ] as const) {
    routes.openapi(
      route({
        method: "get",
        path,
        summary,
        scope: "read",
        errors: directoryErrors,
        request: { query: inProject },
        responses: { 200: json(page(projectResponses.command)) },
      }),
      async (c) => {
        const { directory = engines.defaultDirectory } = c.req.valid("query")
        const items = await engines.use(directory, async (tackle) =>
          tackle
            .commands()
            .filter(({ origin }) => isListed(origin))
            .map(({ name, description, origin }) => ({ name, description, origin })),
        )
        return c.json({ items }, 200)
      },
    )
  }

  routes.openapi(
    route({
      method: "get",
      path: "/model",
      summary: "List the configured models, or return one model",
      scope: "read",
      errors: [...directoryErrors, "usage", "model.not-found", "model.package"],
      request: {
        query: inProject.extend({
          name: z.string().optional().openapi({
            description:
              "Name of a model, as `provider/model`. If set, only this model is returned, even if it is not listed",
          }),
        }),
      },
      responses: { 200: json(page(projectResponses.model)) },
    }),
    async (c) => {
      const { directory = engines.defaultDirectory, name } = c.req.valid("query")
      const items = await engines.use(directory, async (tackle) =>
        (name === undefined ? tackle.models() : [await tackle.model(name)]).map(
          ({ ref, name, limit, cost, attachment, toolCall }) => ({
            id: modelName(ref),
            name,
            limit,
            cost,
            attachment: attachment === true,
            toolCall,
          }),
        ),
      )
      return c.json({ items }, 200)
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/mcp",
      summary: "List the project's MCP servers. Starts servers that are not running",
      scope: "run",
      errors: directoryErrors,
      request: { query: inProject },
      responses: { 200: json(page(projectResponses.mcpServer)) },
    }),
    async (c) => {
      const { directory = engines.defaultDirectory } = c.req.valid("query")
      const { signal } = c.req.raw
      return c.json({ items: await engines.use(directory, (tackle) => tackle.mcpServers({ signal })) }, 200)
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/mcp/prompt",
      summary:
        "List the prompts from MCP servers. A prompt is called as `/server:prompt`. Starts servers that are not running",
      scope: "run",
      errors: directoryErrors,
      request: { query: inProject },
      responses: { 200: json(page(projectResponses.mcpPrompt)) },
    }),
    async (c) => {
      const { directory = engines.defaultDirectory } = c.req.valid("query")
      const { signal } = c.req.raw
      return c.json({ items: await engines.use(directory, (tackle) => tackle.mcpPrompts(signal)) }, 200)
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/file",
      summary: "Read a file or list a directory",
      description:
        "Runs the `read` tool. The project's permission rules apply, and the response may wait for a reply to a permission request.",
      scope: "read",
      errors: [...directoryErrors, "permission.denied", "call.failed"],
      request: {
        query: inProject.extend({
          path: z.string().min(1).openapi({ description: "Absolute path, or path relative to `directory`" }),
          offset: z.string().optional().openapi({ description: "Index of the first line or entry, from 0" }),
          limit: z.string().optional().openapi({ description: "Maximum number of lines or entries" }),
        }),
      },
      responses: { 200: json(projectResponses.output) },
    }),
    async (c) => {
      const { directory = engines.defaultDirectory, path, ...range } = c.req.valid("query")
      const input = { filePath: path, ...range }
      return c.json(await callIn(directory, { tool: "read", input, signal: c.req.raw.signal }), 200)
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/find",
      summary: "Find files by name, or lines by text",
      description:
        "Runs the `glob` tool with `pattern`, or the `grep` tool with `text`. The project's permission rules apply, as for `GET /file`.",
      scope: "read",
      errors: [...directoryErrors, "permission.denied", "call.failed"],
      request: {
        query: inProject
          .extend({
            pattern: z
              .string()
              .min(1)
              .optional()
              .openapi({ description: "Glob pattern for paths, such as `src/**/*.ts`" }),
            text: z.string().min(1).optional().openapi({ description: "Regular expression" }),
            path: z
              .string()
              .min(1)
              .optional()
              .openapi({ description: "Directory to search, or, with `text`, a file" }),
            include: z
              .string()
              .min(1)
              .optional()
              .openapi({ description: "Glob pattern for the files to search. Only with `text`" }),
          })
          .refine(({ pattern, text }) => (pattern === undefined) !== (text === undefined), {
            error: "set either `pattern` or `text`",
          }),
      },
      responses: { 200: json(projectResponses.output) },
    }),
    async (c) => {
      const { directory = engines.defaultDirectory, pattern, text, ...scope } = c.req.valid("query")
      const call =
        pattern === undefined
          ? { tool: "grep", input: { pattern: text, ...scope } }
          : { tool: "glob", input: { pattern, path: scope.path } }
      return c.json(await callIn(directory, { ...call, signal: c.req.raw.signal }), 200)
    },
  )

  routes.openapi(
    route({
      method: "get",
      path: "/find/file",
      summary: "Find files by letters in their paths",
      description:
        "Returns paths relative to the directory, best match first. Omits ignored files and files that a permission rule denies for `read`.",
      scope: "read",
      errors: directoryErrors,
      request: {
        query: inProject.extend({
          query: z.string().openapi({ description: "Letters in the order in which the path contains them" }),
          limit: numberIn({ min: 1, max: 100 }).default(20),
        }),
      },
      responses: { 200: json(page(z.string())) },
    }),
    async (c) => {
      const { directory = engines.defaultDirectory, query, limit } = c.req.valid("query")
      const { signal } = c.req.raw
      const items = await engines.use(directory, (tackle) => tackle.findFiles(query, { limit, signal }))
      return c.json({ items }, 200)
    },
  )

  async function resultOf(directory: string, call: Parameters<Tackle["callTool"]>[0]) {
    const { callID, state } = await engines.use(directory, (tackle) => tackle.callTool(call))
    if (state.status === "error" && state.metadata?.kind === "unknown-tool") throw notFound("tool", call.tool)
    return { callID, state }
  }

  /** Makes a call whose progress is streamed. Rejects with an error that occurs within {@link streamStartMs}. */
  async function streamCall(directory: string, call: Parameters<Tackle["callTool"]>[0]) {
    const leave = new AbortController()
    const channel = createChannel<CallEvent>(() => leave.abort())
    const signal = call.signal ? AbortSignal.any([call.signal, leave.signal]) : leave.signal
    const onProgress = (state: ToolStateRunning) => {
      // A slow client receives only the latest state.
      channel.drain()
      channel.push({ type: "progress", state })
    }
    const ended = resultOf(directory, { ...call, signal, onProgress })
      .then((result) => channel.push({ type: "result", ...result }))
      .finally(channel.end)
    await within(ended, streamStartMs)
    // The response has begun. A stream without a result tells the client that the call failed.
    ended.catch(() => {})
    return eventStream(channel, { heartbeatMs: context.heartbeatMs, onEnd() {} })
  }

  async function callIn(directory: string, call: Parameters<Tackle["callTool"]>[0]) {
    context.assertStartsWork()
    const { state } = await engines.use(directory, (tackle) => tackle.callTool(call))
    if (state.status === "completed") {
      const { title, output, metadata } = state
      return { title, output, metadata }
    }
    const isRefused = state.metadata?.kind === "refused"
    throw new ServerError(state.error, {
      code: isRefused ? "permission.denied" : "call.failed",
    })
  }

  return routes
}
