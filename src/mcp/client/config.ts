import * as z from "zod"

const common = () => ({
  enabled: z.boolean().optional().describe("False: the server is not used"),
  timeout: z
    .number()
    .int()
    .positive()
    .optional()
    .describe("Milliseconds until the server has to be up and has named its tools (default 30000)"),
})

/** A server that is a program on this machine. */
const LocalServer = z.lazy(() =>
  z.strictObject({
    type: z.literal("local"),
    command: z
      .array(z.string().min(1))
      .min(1)
      .describe("Program and arguments that start the server on standard input and output"),
    environment: z.record(z.string(), z.string()).optional().describe("Environment variables that are added"),
    ...common(),
  }),
)
export type LocalServer = z.infer<typeof LocalServer>

/** How Tackle signs in to a server. What is left out is found out, or agreed on with the server. */
const OAuthSettings = z.lazy(() =>
  z.strictObject({
    clientId: z.string().min(1).optional().describe("Client that was registered with the server by hand"),
    clientSecret: z.string().optional().describe("Its secret, such as {env:NAME}"),
    privateKey: z
      .string()
      .min(1)
      .optional()
      .describe("Key in PEM by which the client proves that it is clientId, such as {file:~/key.pem}"),
    clientMetadataUrl: z
      .url({ protocol: /^https$/ })
      .optional()
      .describe("Address of a document about the client that stands for its id, where the server takes such"),
    scope: z.string().optional().describe("Rights that are asked for, with blanks between them"),
    redirectPort: z
      .number()
      .int()
      .min(1)
      .max(65_535)
      .optional()
      .describe("Port of 127.0.0.1 to which the browser comes back (default: any that is free)"),
    grant: z
      .enum(["authorization_code", "client_credentials"])
      .optional()
      .describe("client_credentials: the client signs in as itself, without a person"),
  }),
)
export type OAuthSettings = z.infer<typeof OAuthSettings>

/** A server at an address. */
const RemoteServer = z.lazy(() =>
  z.strictObject({
    type: z.literal("remote"),
    url: z.url({ protocol: /^https?$/ }).describe("Where the server is asked"),
    headers: z.record(z.string(), z.string()).optional().describe("Headers of every request to it"),
    oauth: z
      .union([z.literal(false), OAuthSettings])
      .optional()
      .describe("How to sign in to it (`tackle mcp auth`); false: not at all"),
    ...common(),
  }),
)
export type RemoteServer = z.infer<typeof RemoteServer>

/** Switches a server off or on that another config file describes. */
const Switch = z.lazy(() => z.strictObject({ enabled: z.boolean() }))

/** `mcp` of the config: servers by their id, in OpenCode's shape. */
export const McpConfig = z.lazy(() => z.record(z.string(), z.union([LocalServer, RemoteServer, Switch])))
export type McpConfig = z.infer<typeof McpConfig>

/** A server that may be used, by its id in the config. */
export interface McpServer {
  id: string
  settings: LocalServer | RemoteServer
}

/** Those of the config that are described and not switched off, in its order. */
export function enabledServers(config: McpConfig | undefined): McpServer[] {
  return Object.entries(config ?? {}).flatMap(([id, settings]) =>
    "type" in settings && settings.enabled !== false ? [{ id, settings }] : [],
  )
}
