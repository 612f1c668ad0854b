import { UsageError } from "../util/errors.ts"
import type { FormatterConfig } from "./config.ts"
import { type Formatter, knownFormatters } from "./known-formatters.ts"

/**
 * The formatters that a configuration switches on: none without one; all known ones by `true`; else those it names. One
 * that is named is meant, whatever the project is set up for. Throws `UsageError` for one that is not known and says too
 * little.
 */
export function configuredFormatters(config: FormatterConfig | undefined): readonly Formatter[] {
  if (config === undefined || config === false) return []
  if (config === true) return knownFormatters
  const known = new Map(knownFormatters.map((formatter) => [formatter.name, formatter]))
  return Object.entries(config).flatMap(([name, given]) => {
    if (given.disabled) return []
    const base = known.get(name)
    const [program, ...args] = given.command ?? base?.command ?? []
    const extensions = given.extensions ?? base?.extensions
    if (program === undefined || !extensions) {
      throw new UsageError(`formatter.${name} is not known: it needs "command" and "extensions".`)
    }
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
