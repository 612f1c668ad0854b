import { createRequire } from "node:module"
import { dirname, join, resolve } from "node:path"
import type { LspConfig } from "../../src/lsp/config.ts"

const root = resolve(import.meta.dirname, "../..")
const programs = join(root, "node_modules/.bin")

/** TypeScript 5, which still has the tsserver that typescript-language-server works with. */
const service = createRequire(import.meta.url).resolve("@vtsls/language-service")
const tsserver = join(dirname(createRequire(service).resolve("typescript/package.json")), "lib/tsserver.js")

type Servers = Exclude<LspConfig, false>

/** Real servers, by what they are called here: each as the only one there is. */
export const realServers = {
  /** Publishes its diagnostics. */
  typescript: {
    typescript: {
      command: [join(programs, "typescript-language-server"), "--stdio"],
      initialization: { tsserver: { path: tsserver } },
    },
  },
  /** Gives its diagnostics when asked. */
  native: {
    typescript: { disabled: true },
    native: { command: [join(programs, "tsc"), "--lsp", "--stdio"], extensions: [".ts"] },
  },
  python: { pyright: { command: [join(programs, "pyright-langserver"), "--stdio"] } },
} satisfies Record<string, Servers>

/** A server of our own that misbehaves as told: see `scripted-server.ts`. */
export function scriptedServer(...args: string[]): Servers {
  const script = join(import.meta.dirname, "scripted-server.ts")
  return { scripted: { command: [process.execPath, script, ...args], extensions: [".txt"] } }
}
