import * as z from "zod"

const common = () => ({
  enabled: z.boolean().optional().describe("Set to false to disable the server"),
  timeout: z
    .number()
    .int()
    .positive()
    .optional()
    .describe(
      "Time limit for starting the server and for listing its tools, resources or prompts, in milliseconds (default 30000)",
    ),
  callTimeout: z
    .number()
    .int()
    .positive()
    .max(2 ** 31 - 1)
    .optional()
    .describe(
      "Time limit for a tool call, in milliseconds, excluding the time in which the server waits for the user or the model (default 3600000)",
    ),
})

/** Settings for a server that runs as a local program. */
const LocalServer = z.lazy(() =>
  z.strictObject({
    type: z.literal("local"),
    command: z
      .array(z.string().min(1))
      .min(1)
      .describe("Program and arguments. The server communicates over stdin and stdout"),
    environment: z.record(z.string(), z.string()).optional().describe("Additional environment variables"),
    ...common(),
  }),
)
export type LocalServer = z.infer<typeof LocalServer>

/**
 * OAuth settings for a server. The endpoints are discovered. Without a client id, a client is registered with the
 * server, unless the server accepts `clientMetadataUrl`.
 */
const OAuthSettings = z.lazy(() =>
  z.strictObject({
    clientId: z.string().min(1).optional().describe("Id of a client that you registered with the server"),
    clientSecret: z.string().optional().describe("Client secret, such as {env:NAME}"),
    privateKey: z
      .string()
      .min(1)
      .optional()
      .describe("Private key in PEM format that authenticates the client, such as {file:~/key.pem}"),
    clientMetadataUrl: z
      .url({ protocol: /^https$/ })
      .optional()
      .describe("URL of a client metadata document, which some servers accept as the client id"),
    scope: z.string().optional().describe("Requested scopes, separated by spaces"),
    redirectPort: z
      .number()
      .int()
      .min(1)
      .max(65_535)
      .optional()
      .describe("Port on 127.0.0.1 to which the browser is redirected (default: any free port)"),
    grant: z
      .enum(["authorization_code", "client_credentials"])
      .optional()
      .describe("OAuth grant type. With client_credentials, the client signs in as itself, without a user"),
  }),
)
export type OAuthSettings = z.infer<typeof OAuthSettings>

/** Settings for a server at a URL. */
const RemoteServer = z.lazy(() =>
  z.strictObject({
    type: z.literal("remote"),
    url: z.url({ protocol: /^https?$/ }).describe("URL of the server"),
    headers: z
      .record(z.string(), z.string())
      .optional()
      .describe("Headers sent with every request to the server"),
    oauth: z
      .union([z.literal(false), OAuthSettings])
      .optional()
      .describe("Settings for signing in with `tackle mcp auth`. Set to false to disable signing in"),
    ...common(),
  }),
)
export type RemoteServer = z.infer<typeof RemoteServer>

/** Enables or disables a server that another config file describes. */
const Switch = z.lazy(() => z.strictObject({ enabled: z.boolean() }))

/** The `mcp` key in the config: servers keyed by id, in OpenCode's format. */
export const McpConfig = z.lazy(() => z.record(z.string(), z.union([LocalServer, RemoteServer, Switch])))
export type McpConfig = z.infer<typeof McpConfig>

/** An enabled server and its id in the config. */
export interface McpServer {
  id: string
  settings: LocalServer | RemoteServer
}

/** Returns the servers that have settings and are not disabled, in config order. */
export function enabledServers(config: McpConfig | undefined): McpServer[] {
  return Object.entries(config ?? {}).flatMap(([id, settings]) =>
    "type" in settings && settings.enabled !== false ? [{ id, settings }] : [],
  )
}
