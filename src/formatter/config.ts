import * as z from "zod"

const FormatterEntry = z.lazy(() =>
  z.strictObject({
    command: z
      .array(z.string().min(1))
      .min(1)
      .optional()
      .describe("Program and arguments that format a file where it lies; $FILE stands for its path"),
    extensions: z
      .array(z.string().regex(/^\.[^/]+$/, 'begins with a dot, such as ".ts"'))
      .optional()
      .describe("Ends of the names of the files that it is for"),
    environment: z.record(z.string(), z.string()).optional().describe("Environment variables that are added"),
    runsProjectCode: z
      .boolean()
      .optional()
      .describe(
        "False says that no file of a project makes it run code: it is run in projects that are not trusted, outside of the sandbox",
      ),
    disabled: z.boolean().optional().describe("True switches a formatter off"),
  }),
)

/** What is said of one formatter, by its name. */
export type FormatterEntry = z.infer<typeof FormatterEntry>

/**
 * `formatter` of the config: true for the known ones that a project is set up for, false for none, else those that are
 * named, known or own.
 */
export const FormatterConfig = z.lazy(() => z.union([z.boolean(), z.record(z.string(), FormatterEntry)]))
export type FormatterConfig = z.infer<typeof FormatterConfig>
