import * as z from "zod"

const ServerConfig = z.lazy(() =>
  z.strictObject({
    command: z
      .array(z.string().min(1))
      .min(1)
      .optional()
      .describe("Program and arguments that start the server on standard input and output"),
    extensions: z
      .array(z.string().regex(/^\.[^/]+$/, 'begins with a dot, such as ".ts"'))
      .optional()
      .describe("Ends of the names of the files that it is for"),
    roots: z
      .array(z.string().min(1))
      .optional()
      .describe(
        "Files that mark a root: the nearest directory above a file that has one is served as one project",
      ),
    env: z.record(z.string(), z.string()).optional().describe("Environment variables that are added"),
    initialization: z
      .record(z.string(), z.unknown())
      .optional()
      .describe(
        "Options of the server itself: sent as it starts, and the answer when it asks for its settings",
      ),
    disabled: z.boolean().optional().describe("True switches a server off"),
  }),
)

/** `lsp` of the config: false for no server at all, else changes to known servers, and own ones, by id. */
export const LspConfig = z.lazy(() => z.union([z.literal(false), z.record(z.string(), ServerConfig)]))
export type LspConfig = z.infer<typeof LspConfig>
