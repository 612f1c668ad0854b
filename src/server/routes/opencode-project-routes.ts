import type { Context } from "hono"
import * as z from "zod"
import type { Tackle } from "../../engine/tackle.ts"
import type { ToolStateCompleted } from "../../schema/tool-state.ts"
import { allSessions } from "../../store/session-pages.ts"
import { homeDirectory } from "../../util/paths.ts"
import { type ServerContext, sessionOf, withSession } from "../context.ts"
import { ServerError } from "../errors.ts"
import {
  toOpenCodeAgent,
  toOpenCodeCommand,
  toOpenCodeConfig,
  toOpenCodeDiff,
  toOpenCodeProviders,
  toOpenCodeSession,
} from "../opencode.ts"
import { directoryOf, openCodeRoute, place } from "./opencode-route.ts"
import { createRouter, limit } from "./route.ts"

const session = z.object({ sessionID: z.string() })

/** Creates the routes of OpenCode's API that read a project and the data of its sessions. */
export function openCodeProjectRoutes(context: ServerContext) {
  const { engines, store, version } = context
  const routes = createRouter()

  /** Defines a route that reads the project of a request. */
  function read<const Q extends z.ZodRawShape>(
    path: string,
    query: Q,
    answer: (tackle: Tackle, c: Context, query: z.infer<z.ZodObject<Q>>) => unknown,
  ) {
    const request = { query: place.extend(query) }
    routes.openapi(openCodeRoute({ method: "get", path, scope: "read", request }), async (c) => {
      const given = c.req.valid("query") as z.infer<z.ZodObject<Q>>
      const result = await engines.use(directoryOf(context, c), async (tackle) => answer(tackle, c, given))
      return c.json(result, 200)
    })
  }

  read("/agent", {}, ({ agents }) =>
    [...agents.values()].filter(({ hidden }) => !hidden).map(toOpenCodeAgent),
  )
  read("/command", {}, (tackle) => tackle.commands().map(toOpenCodeCommand))
  read("/config", {}, toOpenCodeConfig)
  read("/config/providers", {}, (tackle) => toOpenCodeProviders(tackle.models()))

  read("/project/current", {}, async (tackle) => {
    const { worktree, branch } = await tackle.project()
    return {
      id: worktree,
      worktree,
      ...(branch !== undefined && { vcs: "git" }),
      time: { created: 0, updated: 0 },
      sandboxes: [],
    }
  })

  read("/path", {}, ({ directory, worktree, dataDirectory }) => ({
    home: homeDirectory(),
    state: dataDirectory,
    config: dataDirectory,
    ...{ directory, worktree },
  }))

  read("/find/file", { query: z.string(), type: z.string().optional(), limit }, (tackle, c, given) =>
    given.type === "directory"
      ? []
      : tackle.findFiles(given.query, { limit: Math.min(given.limit, 100), signal: c.req.raw.signal }),
  )

  read("/file/content", { path: z.string().min(1) }, (tackle, c, { path }) => {
    context.assertStartsWork()
    return contentOf(tackle, path, c.req.raw.signal)
  })

  routes.openapi(
    openCodeRoute({ method: "get", path: "/mcp", scope: "run", request: { query: place } }),
    async (c) => {
      const servers = await engines.use(directoryOf(context, c), (tackle) =>
        tackle.mcpServers({ signal: c.req.raw.signal }),
      )
      const states = servers.map(({ id, status, problem = "" }) => [
        id,
        status === "connected" ? { status } : { status, error: problem },
      ])
      return c.json(Object.fromEntries(states), 200)
    },
  )

  routes.openapi(
    openCodeRoute({
      method: "get",
      path: "/session/{sessionID}/todo",
      scope: "read",
      request: { params: session },
    }),
    async (c) => {
      const { id } = await sessionOf(context, c.req.valid("param").sessionID)
      return c.json(await store.todos(id), 200)
    },
  )

  routes.openapi(
    openCodeRoute({
      method: "get",
      path: "/session/{sessionID}/diff",
      scope: "read",
      request: { params: session },
    }),
    async (c) => {
      const { sessionID } = c.req.valid("param")
      const { worktree } = await sessionOf(context, sessionID)
      const files = await withSession(context, sessionID, (_, tackle) => tackle.sessions.diff(sessionID))
      return c.json(
        (files ?? []).map((file) => toOpenCodeDiff(file, worktree)),
        200,
      )
    },
  )

  routes.openapi(
    openCodeRoute({
      method: "get",
      path: "/session/{sessionID}/children",
      scope: "read",
      request: { params: session },
    }),
    async (c) => {
      const { id: parentID } = await sessionOf(context, c.req.valid("param").sessionID)
      const children = await allSessions(store, { parentID })
      return c.json(
        children.map((child) => toOpenCodeSession(child, version)),
        200,
      )
    },
  )

  return routes
}

/** Matches the number that `read` writes before a line. */
const lineNumber = /^ *\d+→/

/**
 * Reads a whole file with calls of `read`, so that the project's rules apply and the response may wait for a reply to a
 * permission request. Throws `ServerError` if a call is refused or fails.
 */
async function contentOf(tackle: Tackle, filePath: string, signal: AbortSignal) {
  const lines: string[] = []
  for (;;) {
    const { state } = await tackle.callTool({
      tool: "read",
      input: { filePath, offset: lines.length },
      signal,
    })
    if (state.status !== "completed") {
      const isRefused = state.metadata?.kind === "refused"
      throw new ServerError(state.error, { code: isRefused ? "permission.denied" : "call.failed" })
    }
    const [file] = state.attachments ?? []
    if (file) {
      const content = file.url.slice(file.url.indexOf(",") + 1)
      return { type: "binary", content, encoding: "base64", mimeType: file.mime }
    }
    const page = linesIn(state)
    lines.push(...page)
    const { totalLines } = state.metadata
    if (page.length === 0 || lines.length === totalLines) return { type: "text", content: lines.join("\n") }
  }
}

/** Returns the lines of a page without their numbers. */
function linesIn({ output, metadata }: ToolStateCompleted): string[] {
  if (metadata.type !== "text") throw new ServerError("The path is a directory.", { code: "call.failed" })
  const shown = typeof metadata.shownLines === "number" ? metadata.shownLines : 0
  return output
    .split("\n")
    .slice(1, 1 + shown)
    .map((line) => line.replace(lineNumber, ""))
}
