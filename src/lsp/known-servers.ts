import { createRequire } from "node:module"
import { isRecord } from "../util/json.ts"
import { realPath } from "../util/paths.ts"
import { NoServerError } from "./errors.ts"
import type { LanguageServer, Settings } from "./servers.ts"

const nodeRoots = "package-lock.json pnpm-lock.yaml yarn.lock bun.lock bun.lockb"

/** Nothing of these is installed by us: the first for a file whose program is there serves it. */
export const knownServers: readonly LanguageServer[] = [
  {
    ...server(
      "typescript",
      "typescript-language-server --stdio",
      ".ts .tsx .mts .cts .js .jsx .mjs .cjs",
      nodeRoots,
    ),
    restrict: withOwnTypescript,
    // While the project is loaded a second server would answer, which knows no other file.
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

/** By itself it takes the TypeScript of the project, and runs it: in place of that the one that it was installed with. */
function withOwnTypescript(program: string, { tsserver }: Settings): Settings {
  if (isRecord(tsserver) && tsserver.path !== undefined) return {}
  try {
    return { tsserver: { path: createRequire(realPath(program)).resolve("typescript/lib/tsserver.js") } }
  } catch {
    throw new NoServerError(
      `${program} has no TypeScript of its own, and this project is not trusted, so that its own is not run. Whoever wants it can install TypeScript beside the server, name one by lsp.typescript.initialization.tsserver.path, or trust the project. Use grep and read.`,
    )
  }
}
