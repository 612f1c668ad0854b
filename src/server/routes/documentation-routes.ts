import { createRoute, type OpenAPIHono } from "@hono/zod-openapi"
import type { ServerEnvironment } from "../guard.ts"
import { type Document, referencePage } from "../reference-page.ts"
import { namedSchemas, responses, withReferences } from "../schemas.ts"
import { createRouter, json } from "./route.ts"

/** Creates the routes that describe the server. They need no token. */
export function documentationRoutes(app: OpenAPIHono<ServerEnvironment>, version: string) {
  const routes = createRouter()

  routes.openapi(
    createRoute({
      method: "get",
      path: "/health",
      summary: "Check that the server works",
      description: "Needs no token.",
      responses: { 200: json(responses.health) },
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

/** Returns the OpenAPI 3.1 document of the application. */
export function openApiDocument(app: OpenAPIHono<ServerEnvironment>, version: string): Document {
  const generated = app.getOpenAPI31Document({
    openapi: "3.1.0",
    info: {
      title: "Tackle",
      version,
      description:
        "Sessions of a coding agent over HTTP. Send the header `Authorization: Bearer <token>` with every request.",
    },
  })
  const { components, ...document } = withReferences(generated) as typeof generated
  return {
    ...document,
    components: {
      schemas: { ...components?.schemas, ...namedSchemas() },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "A token of the server's token file" },
      },
    },
  } as unknown as Document
}
