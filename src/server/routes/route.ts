import { createRoute, OpenAPIHono, type RouteConfig } from "@hono/zod-openapi"
import * as z from "zod"
import { type ErrorCode, ServerError, statusOf } from "../errors.ts"
import { requires, type ServerEnvironment } from "../guard.ts"
import { projectResponses } from "../schemas/project-schemas.ts"
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
      const names: Record<string, string> = { json: "body", query: "query", param: "path", header: "header" }
      const place = names[String(result.target)] ?? "request"
      throw new ServerError(`The ${place} is not valid: ${text}.`, {
        code: "request.invalid",
        details: { issues },
      })
    },
  })
}

interface ScopedRoute extends Omit<RouteConfig, "security" | "middleware"> {
  scope: Scope
  /** Error codes for this route, in addition to those that follow from its path, body and scope. */
  errors?: readonly ErrorCode[]
}

/**
 * Returns the configuration of a route that needs a token with the given scope. Adds the scope and the errors to the
 * route's documentation.
 */
export function route<const R extends ScopedRoute>({ scope, errors = [], ...config }: R) {
  const scoped = {
    ...config,
    description: [config.description, `Scope: \`${scope}\`.`].filter(Boolean).join(" "),
    responses: { ...config.responses, ...errorResponses([...commonErrors(config), ...errors]) },
    security: [{ bearer: [] }],
    middleware: requires(scope),
  }
  return createRoute(scoped as unknown as typeof config & Pick<typeof scoped, "security" | "middleware">)
}

/** The errors for a route with a body. */
export const bodyErrors = [
  "json.invalid",
  "body.too-large",
  "content-type.unsupported",
] as const satisfies ErrorCode[]

/** The errors for a route that sends text to a model for a tenant. */
export const tenantErrors = ["tenant.queue", "tenant.tokens", "tenant.cost"] as const satisfies ErrorCode[]

/** The errors for a route that needs no token. */
export const publicErrors = ["host.forbidden", "origin.forbidden"] as const satisfies ErrorCode[]

/** The errors for a route with a project directory. */
export const directoryErrors = ["directory.invalid", "directory.forbidden"] as const satisfies ErrorCode[]

/** Returns the OpenAPI description for a route's error responses: one for each status, with the error codes. */
export function errorResponses(codes: readonly ErrorCode[]) {
  const byStatus = Map.groupBy(new Set(codes), statusOf)
  const content = { "application/json": { schema: projectResponses.error } }
  const described = [...byStatus].map(
    ([status, each]) =>
      [status, { description: each.map((code) => `\`${code}\``).join(", "), content }] as const,
  )
  return { ...Object.fromEntries(described), default: { description: "Other errors", content } }
}

/** Returns the errors that follow from a route's path and request. */
function commonErrors({
  path,
  method,
  request = {},
}: Pick<RouteConfig, "path" | "method" | "request">): ErrorCode[] {
  const codes: ErrorCode[] = [
    "token.invalid",
    "token.busy",
    "scope.insufficient",
    "tenant.forbidden",
    ...publicErrors,
  ]
  if (request.query || request.body || request.headers) codes.push("request.invalid")
  if (request.body) codes.push(...bodyErrors)
  if (path.startsWith("/session/{id}")) codes.push("session.unknown", ...directoryErrors)
  if (method !== "get" || path !== "/session") codes.push("server.busy", "server.stopping")
  return codes
}

/** Returns the OpenAPI description for an optional JSON body or a JSON response. */
export function json<S extends z.ZodType>(schema: S, description = "OK") {
  return { description, content: { "application/json": { schema } } }
}

/** Returns the OpenAPI description for a required JSON body. */
export function body<S extends z.ZodType>(schema: S) {
  return { required: true, content: { "application/json": { schema } } } as const
}

/** Path parameters for a session. */
export const sessionParams = z.object({ id: z.string().openapi({ description: "Id of the session" }) })

/** Maximum number of items on one page. */
const maxLimit = 1_000

/** Query parameter with the maximum number of items on one page. */
export const limit = numberIn({ min: 1, max: maxLimit })
  .default(100)
  .openapi({ description: `Maximum number of items, from 1 to ${maxLimit}. Default: 100`, default: 100 })

/** Returns the schema for a number in a query. Accepts only whole numbers unless `integer` is false. */
export function numberIn({ min, max, integer = true }: { min: number; max: number; integer?: boolean }) {
  const form = integer ? /^\d{1,16}$/ : /^\d{1,16}(\.\d{1,16})?$/
  const isValid = (text: string) => form.test(text) && Number(text) >= min && Number(text) <= max
  return z
    .string()
    .refine(isValid, { error: `expected a ${integer ? "whole " : ""}number from ${min} to ${max}` })
    .transform(Number)
    .openapi({ type: integer ? "integer" : "number", minimum: min, maximum: max })
}

/** Query parameter with a project directory. */
export const directory = z
  .string()
  .optional()
  .openapi({ description: "Absolute path of the project's directory. Default: the server's first root" })
