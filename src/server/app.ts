import type { OpenAPIHono } from "@hono/zod-openapi"
import type { ServerContext } from "./context.ts"
import { errorResponse, ServerError } from "./errors.ts"
import { type GuardOptions, guard, type ServerEnvironment } from "./guard.ts"
import { aguiRoutes } from "./routes/agui-routes.ts"
import { chatRoutes } from "./routes/chat-routes.ts"
import { documentationRoutes } from "./routes/documentation-routes.ts"
import { eventRoutes } from "./routes/event-routes.ts"
import { historyRoutes } from "./routes/history-routes.ts"
import { inputRoutes } from "./routes/input-routes.ts"
import { loginRoutes } from "./routes/login-routes.ts"
import { openCodeRoutes } from "./routes/opencode-routes.ts"
import { pageRoutes } from "./routes/page-routes.ts"
import { projectRoutes } from "./routes/project-routes.ts"
import { requestRoutes } from "./routes/request-routes.ts"
import { createRouter } from "./routes/route.ts"
import { sessionRoutes } from "./routes/session-routes.ts"
import { keepTenantsApart } from "./tenant-access.ts"

/** Creates the HTTP application. `onProblem` receives errors that the client did not cause. */
export function createApp(
  context: ServerContext,
  guardOptions: GuardOptions,
  onProblem: (error: unknown) => void,
): OpenAPIHono<ServerEnvironment> {
  const app = createRouter()
  app.use("*", guard(guardOptions))
  app.use("*", keepTenantsApart(context))
  app.onError((error, c) => errorResponse(c, error, onProblem))
  app.notFound((c) =>
    errorResponse(
      c,
      new ServerError(`${c.req.method} ${c.req.path} does not exist. GET /docs lists all routes.`, {
        code: "route.unknown",
      }),
      onProblem,
    ),
  )
  app.route("/", sessionRoutes(context))
  app.route("/", inputRoutes(context))
  app.route("/", eventRoutes(context))
  app.route("/", historyRoutes(context))
  app.route("/", requestRoutes(context))
  app.route("/", projectRoutes(context))
  app.route("/", chatRoutes(context))
  app.route("/", aguiRoutes(context))
  app.route("/opencode", openCodeRoutes(context))
  app.route("/", loginRoutes(guardOptions.authenticator))
  app.route("/", pageRoutes(context.pageDirectory))
  app.route("/", documentationRoutes(app, context.version))
  return app
}
