import { extname } from "node:path"
import { UsageError } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"
import type { LspConfig } from "./config.ts"
import { knownServers } from "./known-servers.ts"

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
  initialization: Settings
  /**
   * Options under which the program, given by its path, runs nothing of a project that is not trusted; `initialization`
   * comes before them. Absent where no such options are known; throws `NoServerError` where they cannot be had.
   */
  restrict?(program: string, initialization: Settings): Settings
}

/** A server's own options, as JSON: what they mean is between it and whoever wrote them. */
export type Settings = Readonly<Record<string, unknown>>

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
      ...(base?.restrict ? { restrict: base.restrict } : {}),
    }
  })
}

/**
 * What the server is told as it starts. What a configuration says counts before what an untrusted project calls for: it
 * is the person's own. Throws like `restrict`.
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

/** Objects in both become one, the second's values first. */
function mergeSettings(base: Settings, own: Settings): Settings {
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
