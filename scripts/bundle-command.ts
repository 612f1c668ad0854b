import { join } from "node:path"
import { type Plugin, rolldown } from "rolldown"
import { builtins } from "./bundle/builtins.ts"
import { createChunks } from "./bundle/chunks.ts"
import { importOther } from "./bundle/import-other.ts"
import { plainAscii } from "./bundle/plain-ascii.ts"

/** What the bundle of the command is made of. */
export interface CommandBundle {
  /** The folder of the sources. */
  source: string
  /** Where the bundle goes. */
  directory: string
  version: string
}

/**
 * Bundles the command. To load a file takes about a millisecond, so what every run needs is one file, what the help
 * needs another, and what the other commands need a third; everything else is loaded when it is called for.
 */
export async function bundleCommand({ source, directory, version }: CommandBundle): Promise<void> {
  const chunks = createChunks(source, [
    { name: "help", roots: ["./cli/program.ts"] },
    { name: "start", roots: loadedByEveryRun },
    // With the YAML parser, which is an eighth of all.
    { name: "markdown", roots: ["./config/markdown.ts", "./util/front-matter.ts"] },
    { name: "commands", roots: ["./cli/commands/index.ts"] },
  ])
  const bundle = await rolldown({
    input: {
      main: join(source, "cli/main.ts"),
      // Threads begin with a file of their own.
      "html-worker": join(source, "tools/web/html-worker.ts"),
    },
    platform: "node",
    // Both look for files beside themselves.
    external: ["@vscode/ripgrep", "jiti", "sharp"],
    // Modules before UMD, whose own `require` calls a bundler cannot follow.
    resolve: { mainFields: ["module", "main"] },
    transform: {
      target: "node24",
      define: { "process.env.TACKLE_VERSION": JSON.stringify(version) },
      // For the provider packages; the file says why.
      inject: { Headers: [join(source, "model/headers.ts"), "Headers"] },
    },
    plugins: [leaveOutLocales, leaveOutChildren, builtins, chunks.plugin, plainAscii, importOther],
    checks: { eval: false, ineffectiveDynamicImport: false },
  })
  await bundle.write({
    dir: directory,
    // Such as V8 can keep compiled: see bin/load.cjs.
    format: "cjs",
    strict: true,
    entryFileNames: "[name].cjs",
    chunkFileNames: "[name]-[hash].cjs",
    codeSplitting: { groups: chunks.groups },
    // Names stay: errors and stack traces are read by people, and keeping them by wrapping costs time at every closure.
    minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
    comments: { legal: false },
  })
  await bundle.close()
}

/** Modules that a run imports while it goes on, whatever it does. What they import statically comes with them. */
const loadedByEveryRun = [
  "./cli/commands/run.ts",
  "./cli/stdout.ts",
  "./config/layer.ts",
  "./model/http-fetch.ts",
  "./store/sqlite.ts",
  "@ai-sdk/openai-compatible",
]

/** The provider packages pull in every language of zod's messages; ours are English. */
const leaveOutLocales: Plugin = {
  name: "leave-out-locales",
  load: (id) =>
    /zod\/v4\/locales\/index\.js$/.test(id) ? 'export { default as en } from "./en.js"' : undefined,
}

/** commander can start other programs as subcommands. Ours are functions, so the start need not load what that takes. */
const leaveOutChildren: Plugin = {
  name: "leave-out-children",
  resolveId: (id, importer) =>
    id === "node:child_process" && importer?.includes("/commander/") ? leftOut : undefined,
  load: (id) => (id === leftOut ? "export default {}" : undefined),
}

const leftOut = "\0left-out"
