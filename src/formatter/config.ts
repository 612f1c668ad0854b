import * as z from "zod"

const FormatterEntry = z.lazy(() =>
  z.strictObject({
    command: z
      .array(z.string().min(1))
      .min(1)
      .optional()
      .describe("Program and arguments that format a file in place; $FILE is the path of the file"),
    extensions: z
      .array(z.string().regex(/^\.[^/]+$/, 'expected a string that begins with a dot, such as ".ts"'))
      .optional()
      .describe("Extensions of the files to format"),
    environment: z.record(z.string(), z.string()).optional().describe("Additional environment variables"),
    runsProjectCode: z
      .boolean()
      .optional()
      .describe(
        "Set to false if project files cannot make the formatter run code. The formatter then also runs in untrusted projects, outside the sandbox",
      ),
    disabled: z.boolean().optional().describe("Set to true to disable the formatter"),
  }),
)

/** Settings for one formatter. */
export type FormatterEntry = z.infer<typeof FormatterEntry>

/**
 * The `formatter` key in the config. `true` enables the known formatters that are installed and, where they require it,
 * configured in the project. `false` disables all formatters. An object enables the named formatters.
 */
export const FormatterConfig = z.lazy(() => z.union([z.boolean(), z.record(z.string(), FormatterEntry)]))
export type FormatterConfig = z.infer<typeof FormatterConfig>
