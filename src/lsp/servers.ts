import { createRequire } from "node:module"
import { extname } from "node:path"
import { UsageError } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"
import { realPath } from "../util/paths.ts"
import type { LspConfig } from "./config.ts"
import { NoServerError } from "./connection.ts"

/** A language server: how to start it, and which files it supports. */
export interface LanguageServer {
  id: string
  /** Program and arguments. */
  command: readonly [string, ...string[]]
  /** File extensions, including the dot. */
  extensions: readonly string[]
  /** Names of files that mark a root directory. See `findRoot`. */
  roots: readonly string[]
  env: Readonly<Record<string, string>>
  /** Initialization options for the server. They are also returned when the server requests its settings. */
  initialization: Settings
  /**
   * Returns options that prevent the program from running code from an untrusted project. `initialization` takes
   * precedence. This function is undefined if no such options are known. Throws `NoServerError` if the options cannot
   * be determined.
   */
  restrict?(program: string, initialization: Settings): Settings
}

/** A server's settings as JSON. Tackle does not interpret them. */
export type Settings = Readonly<Record<string, unknown>>

/**
 * Returns the servers in the order in which they are tried: first the servers that only the config defines, then the
 * known servers. Omits disabled servers. Throws `UsageError` if a server that is not known has no command or no
 * extensions.
 */
export function languageServers(config: LspConfig | undefined): LanguageServer[] {
  if (config === false) return []
  const known = new Map(knownServers.map((server) => [server.id, server]))
  const configured = Object.entries(config ?? {}).map(([id, given]) => ({ id, given, base: known.get(id) }))
  const own = configured.filter(({ base }) => base === undefined)
  const changed = new Map(configured.filter(({ base }) => base).map((entry) => [entry.id, entry]))
  return [
    ...own,
    ...knownServers.map((base) => changed.get(base.id) ?? { id: base.id, given: {}, base }),
  ].flatMap(({ id, given, base }) => {
    if (given.disabled) return []
    const [program, ...args] = given.command ?? base?.command ?? []
    const extensions = given.extensions ?? base?.extensions
    if (program === undefined || !extensions) {
      throw new UsageError(`lsp.${id} is not a known server. Add "command" and "extensions".`)
    }
    const initialization = mergeSettings(base?.initialization ?? {}, given.initialization ?? {})
    return {
      id,
      command: [program, ...args],
      extensions,
      roots: given.roots ?? base?.roots ?? [],
      env: given.env ?? {},
      initialization,
      restrict: base?.restrict,
    }
  })
}

/**
 * Returns the initialization options for a server. The user's configuration takes precedence over the restrictions for
 * untrusted projects. Throws `NoServerError` if the restrictions cannot be determined.
 */
export function initializationOf(
  server: LanguageServer,
  { program, trusted }: { program: string; trusted: boolean },
): Settings {
  const { initialization, restrict } = server
  return trusted || !restrict
    ? initialization
    : mergeSettings(restrict(program, initialization), initialization)
}

/** Merges two objects recursively. Values of `own` take precedence. */
function mergeSettings(base: Settings, own: Settings): Settings {
  const merged: Record<string, unknown> = { ...base }
  for (const [key, value] of Object.entries(own)) {
    const before = base[key]
    merged[key] = isRecord(before) && isRecord(value) ? mergeSettings(before, value) : value
  }
  return merged
}

/** Returns the protocol's language id for a file. */
export function languageOf(path: string): string {
  const extension = extname(path)
  return languages.get(extension) ?? extension.slice(1)
}

/** Language ids that differ from the file extension. */
const languages = new Map(
  Object.entries({
    typescript: ".ts .mts .cts",
    typescriptreact: ".tsx",
    javascript: ".js .mjs .cjs",
    javascriptreact: ".jsx",
    python: ".py .pyi",
    rust: ".rs",
    shellscript: ".sh .bash",
    cpp: ".cc .cpp .cxx .hpp .hh .hxx",
    c: ".c .h",
    csharp: ".cs",
    ruby: ".rb",
    yaml: ".yml .yaml",
    elixir: ".ex .exs",
    haskell: ".hs",
    kotlin: ".kt .kts",
    terraform: ".tf",
    latex: ".tex",
  }).flatMap(([language, extensions]) =>
    extensions.split(" ").map((extension) => [extension, language] as const),
  ),
)

const nodeRoots = "package-lock.json pnpm-lock.yaml yarn.lock bun.lock bun.lockb"

/** Known servers, none of which Tackle installs. The first installed server for a file is used. */
const knownServers: readonly LanguageServer[] = [
  {
    ...server(
      "typescript",
      "typescript-language-server --stdio",
      ".ts .tsx .mts .cts .js .jsx .mjs .cjs",
      nodeRoots,
    ),
    restrict: withOwnTypescript,
    // With other values, the server starts a second TypeScript server, which answers from a single file while the
    // project is loading.
    initialization: { tsserver: { useSyntaxServer: "never" } },
  },
  server("vtsls", "vtsls --stdio", ".ts .tsx .mts .cts .js .jsx .mjs .cjs", nodeRoots),
  server("pyright", "pyright-langserver --stdio", ".py .pyi", "pyproject.toml pyrightconfig.json setup.py"),
  server("basedpyright", "basedpyright-langserver --stdio", ".py .pyi", "pyproject.toml setup.py"),
  server("gopls", "gopls", ".go", "go.work go.mod"),
  {
    ...server("rust", "rust-analyzer", ".rs", "Cargo.lock Cargo.toml"),
    restrict: () => ({
      cargo: { buildScripts: { enable: false } },
      procMacro: { enable: false },
      checkOnSave: false,
    }),
  },
  server(
    "clangd",
    "clangd",
    ".c .h .cc .cpp .cxx .hpp .hh .hxx",
    "compile_commands.json compile_flags.txt .clangd",
  ),
  server("ruby", "ruby-lsp", ".rb", "Gemfile"),
  server("php", "intelephense --stdio", ".php", "composer.json"),
  server(
    "java",
    "jdtls",
    ".java",
    "settings.gradle settings.gradle.kts pom.xml build.gradle build.gradle.kts",
  ),
  server("kotlin", "kotlin-lsp --stdio", ".kt .kts", "settings.gradle settings.gradle.kts pom.xml"),
  server("csharp", "csharp-ls", ".cs", "global.json"),
  server("swift", "sourcekit-lsp", ".swift", "Package.swift"),
  server("zig", "zls", ".zig", "build.zig"),
  server("elixir", "elixir-ls", ".ex .exs", "mix.exs"),
  server("haskell", "haskell-language-server-wrapper --lsp", ".hs", "cabal.project stack.yaml"),
  server("lua", "lua-language-server", ".lua", ".luarc.json .luarc.jsonc"),
  server("dart", "dart language-server", ".dart", "pubspec.yaml"),
  server("terraform", "terraform-ls serve", ".tf", ".terraform.lock.hcl"),
  server("vue", "vue-language-server --stdio", ".vue", nodeRoots),
  {
    ...server("svelte", "svelteserver --stdio", ".svelte", nodeRoots),
    restrict: () => ({ isTrusted: false }),
  },
  server("bash", "bash-language-server start", ".sh .bash"),
  server("yaml", "yaml-language-server --stdio", ".yml .yaml"),
  server("json", "vscode-json-language-server --stdio", ".json .jsonc"),
  server("css", "vscode-css-language-server --stdio", ".css .scss .less"),
  server("html", "vscode-html-language-server --stdio", ".html"),
  server("latex", "texlab", ".tex .bib"),
  server("nix", "nixd", ".nix", "flake.nix"),
]

/** Creates a table entry. Words in `command`, `extensions` and `roots` are separated by spaces. */
function server(id: string, command: string, extensions: string, roots = ""): LanguageServer {
  const words = (text: string) => text.split(" ").filter((word) => word !== "")
  const [program = id, ...args] = words(command)
  return {
    id,
    command: [program, ...args],
    extensions: words(extensions),
    roots: words(roots),
    env: {},
    initialization: {},
  }
}

/**
 * Returns settings that make the server use the TypeScript version that was installed with it. By default, the server
 * runs the project's TypeScript. Throws `NoServerError` if no TypeScript was installed with the server.
 */
function withOwnTypescript(program: string, { tsserver }: Settings): Settings {
  if (isRecord(tsserver) && tsserver.path !== undefined) return {}
  try {
    return { tsserver: { path: createRequire(realPath(program)).resolve("typescript/lib/tsserver.js") } }
  } catch {
    throw new NoServerError(
      `${program} was installed without TypeScript, and the copy of TypeScript in this untrusted project is not run. Use grep and read. To fix this, the user can install TypeScript next to the server, set lsp.typescript.initialization.tsserver.path, or trust the project.`,
    )
  }
}
