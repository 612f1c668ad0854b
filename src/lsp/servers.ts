import { extname } from "node:path"
import { UsageError } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"
import type { LspConfig } from "./config.ts"

/** How a language server is started, and what for. */
export interface LanguageServer {
  id: string
  /** Program and arguments. */
  command: readonly [string, ...string[]]
  /** With their dot. */
  extensions: readonly string[]
  /** Names of files whose directory is a root. Without one of them the worktree is. */
  roots: readonly string[]
  env: Readonly<Record<string, string>>
  /** Its own options, and its settings when it asks for them. */
  initialization: Readonly<Record<string, unknown>>
}

/** The servers there are, in the order in which they are tried: own ones first, then those known here. */
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
      throw new UsageError(`lsp.${id} is no known server: it needs "command" and "extensions".`)
    }
    const initialization = mergeSettings(base?.initialization ?? {}, given.initialization ?? {})
    return {
      id,
      command: [program, ...args],
      extensions,
      roots: given.roots ?? base?.roots ?? [],
      env: given.env ?? {},
      initialization,
    }
  })
}

/** Objects in both become one, the second's values first. */
function mergeSettings(base: Readonly<Record<string, unknown>>, own: Readonly<Record<string, unknown>>) {
  const merged: Record<string, unknown> = { ...base }
  for (const [key, value] of Object.entries(own)) {
    const before = base[key]
    merged[key] = isRecord(before) && isRecord(value) ? mergeSettings(before, value) : value
  }
  return merged
}

/** How the protocol names the language of a file. */
export function languageOf(path: string): string {
  const extension = extname(path)
  return languages.get(extension) ?? extension.slice(1)
}

/** Those whose languages have a name other than the extension. */
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

/** A server of the table below: its id, the command, extensions and roots, each as words. */
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

const nodeRoots = "package-lock.json pnpm-lock.yaml yarn.lock bun.lock bun.lockb"

/** Nothing of these is installed by us: the first for a file whose program is there serves it. */
const knownServers: readonly LanguageServer[] = [
  {
    ...server(
      "typescript",
      "typescript-language-server --stdio",
      ".ts .tsx .mts .cts .js .jsx .mjs .cjs",
      nodeRoots,
    ),
    // While the project is loaded a second server would answer, which knows no other file.
    initialization: { tsserver: { useSyntaxServer: "never" } },
  },
  server("vtsls", "vtsls --stdio", ".ts .tsx .mts .cts .js .jsx .mjs .cjs", nodeRoots),
  server("pyright", "pyright-langserver --stdio", ".py .pyi", "pyproject.toml pyrightconfig.json setup.py"),
  server("basedpyright", "basedpyright-langserver --stdio", ".py .pyi", "pyproject.toml setup.py"),
  server("gopls", "gopls", ".go", "go.work go.mod"),
  server("rust", "rust-analyzer", ".rs", "Cargo.lock Cargo.toml"),
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
  server("svelte", "svelteserver --stdio", ".svelte", nodeRoots),
  server("bash", "bash-language-server start", ".sh .bash"),
  server("yaml", "yaml-language-server --stdio", ".yml .yaml"),
  server("json", "vscode-json-language-server --stdio", ".json .jsonc"),
  server("css", "vscode-css-language-server --stdio", ".css .scss .less"),
  server("html", "vscode-html-language-server --stdio", ".html"),
  server("latex", "texlab", ".tex .bib"),
  server("nix", "nixd", ".nix", "flake.nix"),
]
