import { UsageError } from "../util/errors.ts"
import type { FormatterConfig, FormatterEntry } from "./config.ts"

/**
 * Returns the configured formatters: none by default, all known formatters if the config is `true`, and otherwise the
 * formatters that it names and does not disable. A named formatter needs no configuration file in the project. Throws
 * `UsageError` if an unknown formatter has no command or no extensions.
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

/**
 * Returns the problem with a formatter's settings, or undefined if the settings are complete or disable the formatter.
 */
export function formatterProblem(name: string, given: FormatterEntry): string | undefined {
  const isComplete = known.has(name) || (given.command && given.extensions)
  return given.disabled || isComplete ? undefined : unknownFormatter(name)
}

/** A program that formats a file in place. */
export interface Formatter {
  name: string
  /** Program and arguments. `$FILE` in an argument is replaced with the absolute path of the file. */
  command: readonly [string, ...string[]]
  /** File extensions, including the dot. */
  extensions: readonly string[]
  environment: Readonly<Record<string, string>>
  /**
   * Names of files that show that a project uses this formatter. One of them must be in the directory of the formatted
   * file or in a parent directory, up to the worktree. If the list is empty, no such file is needed.
   */
  marks: readonly string[]
  /** Whether project files can make the formatter run code. */
  runsProjectCode: boolean
}

const web = ".js .mjs .cjs .jsx .ts .mts .cts .tsx .json .jsonc .css .graphql"

/**
 * Formatters that can run project code. Prettier loads JavaScript configurations and plugins, and rustup's `rustfmt`
 * accepts a toolchain path.
 */
const runCode: ReadonlySet<string> = new Set(["prettier", "rustfmt"])

/** Known formatters, in the order in which they run. */
const knownFormatters: readonly Formatter[] = [
  formatter("biome", "biome format --write $FILE", web, "biome.json biome.jsonc"),
  formatter(
    "prettier",
    "prettier --write $FILE",
    `${web} .md .mdx .html .vue .svelte .scss .less .yaml .yml`,
    ".prettierrc .prettierrc.json .prettierrc.yml .prettierrc.yaml .prettierrc.js .prettierrc.mjs .prettierrc.cjs prettier.config.js prettier.config.mjs prettier.config.cjs",
  ),
  formatter("ruff", "ruff format $FILE", ".py .pyi", "ruff.toml .ruff.toml"),
  formatter("gofmt", "gofmt -w $FILE", ".go"),
  formatter("rustfmt", "rustfmt $FILE", ".rs"),
  formatter("zig", "zig fmt $FILE", ".zig"),
  formatter("dart", "dart format $FILE", ".dart"),
  formatter("terraform", "terraform fmt $FILE", ".tf .tfvars"),
  formatter("clang-format", "clang-format -i $FILE", ".c .h .cc .cpp .hpp", ".clang-format"),
  formatter("shfmt", "shfmt -w $FILE", ".sh .bash", ".editorconfig"),
]

function formatter(name: string, line: string, extensions: string, marks = ""): Formatter {
  const [program = name, ...args] = line.split(" ")
  return {
    name,
    command: [program, ...args],
    extensions: extensions.split(" "),
    environment: {},
    marks: marks === "" ? [] : marks.split(" "),
    runsProjectCode: runCode.has(name),
  }
}

const known: ReadonlyMap<string, Formatter> = new Map(
  knownFormatters.map((formatter) => [formatter.name, formatter]),
)

function unknownFormatter(name: string): string {
  return (
    `The formatter "${name}" is unknown: add "command" and "extensions", or use one of ` +
    `${[...known.keys()].join(", ")}.`
  )
}
