/** A program that formats a file where it lies. */
export interface Formatter {
  name: string
  /** `$FILE` in an argument stands for the file's absolute path. */
  command: readonly [string, ...string[]]
  /** With their dot. */
  extensions: readonly string[]
  environment: Readonly<Record<string, string>>
  /**
   * Files one of which has to lie in a directory above the file, within the worktree: the project is set up for this
   * formatter. Empty: the language has one form.
   */
  marks: readonly string[]
  /** True: files of the project can name code that it then runs, or nobody has said that they cannot. */
  runsProjectCode: boolean
}

const web = ".js .mjs .cjs .jsx .ts .mts .cts .tsx .json .jsonc .css .graphql"

/** Prettier loads configurations and plugins that are JavaScript; rustup's `rustfmt` takes a toolchain by its path. */
const runCode: ReadonlySet<string> = new Set(["prettier", "rustfmt"])

/** Formatters that are known by name, in the order in which they run. Their options are those of their own manuals. */
export const knownFormatters: readonly Formatter[] = [
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
