import { UsageError } from "../util/errors.ts"
import type { FormatterConfig, FormatterEntry } from "./config.ts"
import { type Formatter, knownFormatters } from "./known-formatters.ts"

/**
 * The formatters that a configuration switches on: none without one; all known ones by `true`; else those it names. One
 * that is named is meant, whatever the project is set up for. Throws `UsageError` for one that is not known and says too
 * little.
 */
export function configuredFormatters(config: FormatterConfig | undefined): readonly Formatter[] {
  if (config === undefined || config === false) return []
  if (config === true) return knownFormatters
  return Object.entries(config).flatMap(([name, given]) => {
    if (given.disabled) return []
    const base = known.get(name)
    const [program, ...args] = given.command ?? base?.command ?? []
    const extensions = given.extensions ?? base?.extensions
    if (program === undefined || !extensions) throw new UsageError(unknownFormatter(name))
    return {
      name,
      command: [program, ...args],
      extensions,
      environment: given.environment ?? {},
      marks: [],
      runsProjectCode: given.runsProjectCode ?? (given.command ? true : (base?.runsProjectCode ?? true)),
    }
  })
}

/** What is wrong with an entry of the configuration; undefined where it says enough. */
export function formatterProblem(name: string, given: FormatterEntry): string | undefined {
  const isWhole = known.has(name) || (given.command && given.extensions)
  return given.disabled || isWhole ? undefined : unknownFormatter(name)
}

const known: ReadonlyMap<string, Formatter> = new Map(
  knownFormatters.map((formatter) => [formatter.name, formatter]),
)

function unknownFormatter(name: string): string {
  return (
    `formatter.${name} is not known: give it "command" and "extensions", or take one of ` +
    `${[...known.keys()].join(", ")}.`
  )
}
