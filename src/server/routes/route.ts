import { createRoute, OpenAPIHono, type RouteConfig } from "@hono/zod-openapi"
import * as z from "zod"
import { ServerError } from "../errors.ts"
import { requires, type ServerEnvironment } from "../guard.ts"
import { responses } from "../schemas.ts"
import type { Scope } from "../tokens.ts"

/** Creates a router that rejects invalid requests with an error in the API's format. */
export function createRouter(): OpenAPIHono<ServerEnvironment> {
  return new OpenAPIHono<ServerEnvironment>({
    defaultHook(result) {
      if (result.success) return
      const issues = result.error.issues.map(({ path, message }) => ({ path: path.join("."), message }))
      const text = issues
        .map(({ path, message }) => (path === "" ? message : `${path}: ${message}`))
        .join("; ")
      const place = { json: "body", query: "query", param: "path" }[String(result.target)] ?? "request"
      throw new ServerError(`The ${place} is not valid: ${text}.`, {
        status: 400,
        code: "request.invalid",
        details: { issues },
      })
    },
  })
}

/**
 * Describes a route that needs a token of the given scope. Adds the scope and the common errors to the documentation.
 */
export function route<const R extends Omit<RouteConfig, "security" | "middleware"> & { scope: Scope }>({
  scope,
  ...config
}: R) {
  const scoped = {
    ...config,
    description: [config.description, `Scope: \`${scope}\`.`].filter(Boolean).join(" "),
    responses: {
      ...config.responses,
      default: { description: "Error", content: { "application/json": { schema: responses.error } } },
    },
    security: [{ bearer: [] }],
    middleware: requires(scope),
  }
  return createRoute(scoped as typeof scoped & Omit<R, "scope">)
}

/** Describes a JSON body or response. */
export function json<S extends z.ZodType>(schema: S, description = "OK") {
  return { description, content: { "application/json": { schema } } }
}

/** Describes a required JSON body. */
export function body<S extends z.ZodType>(schema: S) {
  return { required: true, content: { "application/json": { schema } } } as const
}

/** Path parameters of a session. */
export const sessionParams = z.object({ id: z.string().openapi({ description: "Id of the session" }) })

/** Maximum number of items of one page. */
const maxLimit = 1_000

/** Query parameter with the number of items of one page. */
export const limit = z.coerce
  .number()
  .int()
  .min(1)
  .max(maxLimit)
  .default(100)
  .openapi({ description: `Maximum number of items, from 1 to ${maxLimit}` })

/** Query parameter with the directory of a project. */
export const directory = z
  .string()
  .optional()
  .openapi({ description: "Absolute path of the project's directory. Default: the server's first root" })
