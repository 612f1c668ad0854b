import { createRoute, type OpenAPIHono } from "@hono/zod-openapi"
import type { ServerEnvironment } from "../guard.ts"
import { type Document, referencePage } from "../reference-page.ts"
import { namedSchemas, withReferences } from "../schemas/named.ts"
import { projectResponses } from "../schemas/project-schemas.ts"
import { createRouter, errorResponses, json, publicErrors } from "./route.ts"

/** Creates the routes that describe the server. These routes need no token. */
export function documentationRoutes(app: OpenAPIHono<ServerEnvironment>, version: string) {
  const routes = createRouter()

  routes.openapi(
    createRoute({
      method: "get",
      path: "/health",
      summary: "Check that the server works",
      description: "Needs no token.",
      responses: { 200: json(projectResponses.health), ...errorResponses(publicErrors) },
    }),
    (c) => c.json({ healthy: true as const, version }, 200),
  )

  let document: Document | undefined
  const describe = () => (document ??= openApiDocument(app, version))

  routes.get("/openapi.json", (c) => c.json(describe() as object))
  routes.get("/docs", (c) => {
    const { html, styleHash } = referencePage(describe())
    c.header(
      "content-security-policy",
      `default-src 'none'; style-src '${styleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    )
    return c.html(html)
  })
  return routes
}

/** The introduction of the OpenAPI document: what a client must know in addition to the routes. */
const description = [
  "Coding agent sessions over HTTP. Send the header `Authorization: Bearer <token>`, except to routes that need no token.",
  "Create a session with `POST /session`, and send prompts with `POST /session/{id}/input`. Follow the run with `GET /session/{id}/event`, or wait for its end with `POST /session/{id}/wait`, and read the messages with `GET /session/{id}/message`.",
  "While a session's `status` is `waiting`, `GET /request?session={id}` lists its permission requests and questions. Answer them with `POST /request/{id}/reply`.",
  'Errors have the form `{"error": {"code", "message", "details"}}`. A list has `items`, and `next` if there are more items.',
].join("\n\n")

/** Returns the OpenAPI 3.1 document for the application. */
export function openApiDocument(app: OpenAPIHono<ServerEnvironment>, version: string): Document {
  const generated = app.getOpenAPI31Document({
    openapi: "3.1.0",
    info: {
      title: "Tackle",
      version,
      description,
    },
  })
  const { components, ...document } = withReferences(generated) as typeof generated
  for (const [path, methods] of Object.entries(document.paths ?? {}))
    for (const [method, operation] of Object.entries(methods))
      operation.operationId ??= operationName(method, path)
  return {
    ...document,
    components: {
      schemas: { ...components?.schemas, ...namedSchemas() },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "A token from the server's token file" },
      },
    },
  } as unknown as Document
}

/** Returns an operation's name for generated clients, such as `getSessionMessage` or `patchSessionById`. */
function operationName(method: string, path: string): string {
  const words = path
    .replace(/\{\w+\}$/, "by/id")
    .split("/")
    .filter((word) => /^\w/.test(word))
  return method + words.map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`).join("")
}
