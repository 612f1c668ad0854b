import * as z from "zod"

const ServerConfig = z.lazy(() =>
  z.strictObject({
    command: z
      .array(z.string().min(1))
      .min(1)
      .optional()
      .describe("Program and arguments. The server communicates over stdin and stdout"),
    extensions: z
      .array(z.string().regex(/^\.[^/]+$/, 'expected a string that begins with a dot, such as ".ts"'))
      .optional()
      .describe("Extensions of the files that the server supports"),
    roots: z
      .array(z.string().min(1))
      .optional()
      .describe(
        "Names of files that mark a project root. The root for a source file is the nearest parent directory with one of these files",
      ),
    env: z.record(z.string(), z.string()).optional().describe("Additional environment variables"),
    initialization: z
      .record(z.string(), z.unknown())
      .optional()
      .describe("Options for the server, sent when the server starts and when it requests its settings"),
    disabled: z.boolean().optional().describe("Set to true to disable the server"),
  }),
)

/**
 * The `lsp` key in the config. `false` disables all servers. An object, keyed by server id, changes known servers or
 * adds servers.
 */
export const LspConfig = z.lazy(() => z.union([z.literal(false), z.record(z.string(), ServerConfig)]))
export type LspConfig = z.infer<typeof LspConfig>
