/**
 * Builds what is published: `dist/cli` (the command as a bundle with lazy chunks), `dist/lib` (the library as plain
 * modules with types) and `dist/web` (the web page). Runs in a few seconds. `npm ci` runs this script. The old build
 * stays in use until the new build is complete, so that commands also work during a build and after a failed build.
 */
import { execFileSync } from "node:child_process"
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { createRequire } from "node:module"
import { basename, join, resolve } from "node:path"
import { bundleCommand } from "./bundle-command.ts"
import { bundleWeb } from "./bundle-web.ts"
import { inlineTexts } from "./inline-texts.ts"

const root = resolve(import.meta.dirname, "..")
const source = join(root, "src")
const output = join(root, "dist")
const require = createRequire(import.meta.url)

const workshop = mkdtempSync(join(root, ".dist-"))
try {
  const fresh = join(workshop, "new")
  await buildCommand(join(fresh, "cli"))
  buildLibrary(join(fresh, "lib"))
  await bundleWeb({ source: join(root, "web"), directory: join(fresh, "web") })
  if (existsSync(output)) renameSync(output, join(workshop, "old"))
  renameSync(fresh, output)
} finally {
  rmSync(workshop, { recursive: true, force: true, maxRetries: 3 })
}
async function buildCommand(directory: string): Promise<void> {
  await bundleCommand({ source, directory, version: version() })
  writeFileSync(
    join(directory, "help.txt"),
    execFileSync(process.execPath, [join(directory, "main.cjs"), "--help"]),
  )
  for (const grammar of ["tree-sitter-bash/tree-sitter-bash.wasm", "web-tree-sitter/web-tree-sitter.wasm"]) {
    copyFileSync(require.resolve(grammar), join(directory, basename(grammar)))
  }
}

/** Emits one file per exported module and each module that it imports, so that a user's bundler can drop unused modules. */
function buildLibrary(directory: string): void {
  const tsc = join(root, "node_modules/typescript/bin/tsc")
  execFileSync(process.execPath, [tsc, "-p", join(root, "tsconfig.build.json"), "--outDir", directory], {
    stdio: "inherit",
  })
  for (const file of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".js")) continue
    const path = join(directory, file)
    writeFileSync(path, inlineTexts(readFileSync(path, "utf8"), join(source, file)))
  }
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  if (typeof manifest === "object" && manifest !== null && "version" in manifest)
    return String(manifest.version)
  throw new Error("package.json has no version")
}
