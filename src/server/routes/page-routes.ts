import { readFile } from "node:fs/promises"
import { extname, join } from "node:path"
import type { Context } from "hono"
import { systemCode } from "../../util/errors.ts"
import { ServerError } from "../errors.ts"
import type { ServerEnvironment } from "../guard.ts"
import { createRouter } from "./route.ts"

/** Content security policy of the page. Allows no inline scripts or styles, no other origins and no frames. */
const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ")

const types: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
}

/**
 * Creates the routes for the web page. `directory` contains the page's files. These routes need no token, because the
 * files contain no user data.
 */
export function pageRoutes(directory: string | undefined) {
  const routes = createRouter()

  async function send(c: Context<ServerEnvironment>, name: string): Promise<Response> {
    const type = types[extname(name)]
    const content = directory !== undefined && type !== undefined && (await read(join(directory, name)))
    if (!content) throw missing(c.req.path)
    c.header("content-type", type)
    c.header("content-security-policy", pagePolicy)
    return c.body(content)
  }

  routes.get("/", (c) => send(c, "index.html"))

  routes.get("/assets/:name{[\\w-]+\\.\\w+}", async (c) => {
    const response = await send(c, c.req.param("name"))
    // The file name contains a hash of the content.
    response.headers.set("cache-control", "public, max-age=31536000, immutable")
    return response
  })

  return routes
}

async function read(path: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  try {
    return new Uint8Array(await readFile(path))
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined
    throw error
  }
}

function missing(path: string): ServerError {
  const message =
    path === "/"
      ? "The web page is not built. Run `npm run build`. GET /docs lists the routes of the API."
      : `The web page has no file ${path}. Reload the page.`
  return new ServerError(message, { code: "route.unknown" })
}
