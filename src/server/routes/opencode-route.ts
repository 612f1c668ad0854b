import type { Context } from "hono"
import * as z from "zod"
import type { ServerContext } from "../context.ts"
import { ServerError } from "../errors.ts"
import { json, route } from "./route.ts"

/** Query parameters of a route for a project. Fields that OpenCode's client adds are ignored. */
export const place = z.looseObject({ directory: z.string().optional() })

/** Defines a route. The OpenAPI document does not list the route, because OpenCode's own document describes it. */
export function openCodeRoute<
  const R extends Omit<Parameters<typeof route>[0], "responses" | "hide" | "summary">,
>(config: R) {
  const responses = { 200: json(z.unknown()), 204: { description: "Accepted" } }
  return route({ ...config, hide: true, responses })
}

/** Returns the directory for a request: from the query, or from the header that OpenCode's client sends. */
export function directoryOf({ engines }: ServerContext, c: Context): string {
  const header = c.req.header("x-opencode-directory")
  return c.req.query("directory") ?? (header && decoded(header)) ?? engines.defaultDirectory
}

function decoded(header: string): string {
  try {
    return decodeURIComponent(header)
  } catch {
    throw new ServerError("The header x-opencode-directory is not valid percent-encoding.", {
      code: "directory.invalid",
    })
  }
}
