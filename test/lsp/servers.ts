import { createRequire } from "node:module"
import { dirname, join, resolve } from "node:path"
import type { LspConfig } from "../../src/lsp/config.ts"

const root = resolve(import.meta.dirname, "../..")
const programs = join(root, "node_modules/.bin")

/** TypeScript 5 still contains the tsserver that typescript-language-server needs. */
const service = createRequire(import.meta.url).resolve("@vtsls/language-service")
const tsserver = join(dirname(createRequire(service).resolve("typescript/package.json")), "lib/tsserver.js")

type Servers = Exclude<LspConfig, false>

/** Configurations with one real server each. */
export const realServers = {
  /** Publishes diagnostics. */
  typescript: {
    typescript: {
      command: [join(programs, "typescript-language-server"), "--stdio"],
      initialization: { tsserver: { path: tsserver } },
    },
  },
  /** Returns diagnostics on request. */
  native: {
    typescript: { disabled: true },
    native: { command: [join(programs, "tsc"), "--lsp", "--stdio"], extensions: [".ts"] },
  },
  python: { pyright: { command: [join(programs, "pyright-langserver"), "--stdio"] } },
} satisfies Record<string, Servers>

/** A configuration with `scripted-server.ts`. */
export function scriptedServer(...args: string[]): Servers {
  const script = join(import.meta.dirname, "scripted-server.ts")
  return { scripted: { command: [process.execPath, script, ...args], extensions: [".txt"] } }
}
