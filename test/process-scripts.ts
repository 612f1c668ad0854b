import { createHash } from "node:crypto"
import { existsSync, readdirSync, renameSync, rmSync, statSync } from "node:fs"
import { join, resolve } from "node:path"
import { pathToFileURL } from "node:url"
import type { Plugin } from "rolldown"
import { inject } from "vitest"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  interface ProvidedContext {
    /** Directory of the bundled scripts. */
    processScripts: string
  }
}

const root = resolve(import.meta.dirname, "..")

/** Directory of the bundles of all states of the sources. Below `node_modules`, because they import packages. */
const bundles = join(root, "node_modules/.cache/test-processes")

/** Scripts that tests run in their own processes. */
const scripts = [
  "scripts/mcp-conformance-client",
  "test/engine/edit-process",
  "test/plugin/call-tools",
  "test/registry/call-tools",
  "test/registry/change-tools",
  "test/scale/dispatch-process",
  "test/session/control-process",
  "test/session/input-process",
  "test/session/postgres-process",
  "test/session/prompt-process",
  "test/store/private-file-writer",
  "test/store/writer",
] as const

/** Returns the path of a bundled script. */
export function processScript(name: (typeof scripts)[number]): string {
  return join(inject("processScripts"), `${name}.mjs`)
}

/**
 * Bundles the scripts, unless they are bundled for this state of the sources. A process needs 0.25 s of processor time to
 * load a bundle with the engine, and 0.6 s to load several hundred sources.
 */
export default async function bundleProcessScripts(project: TestProject): Promise<void> {
  const directory = join(bundles, stateOfSources())
  project.provide("processScripts", directory)
  if (existsSync(directory)) return
  // Moved into place when it is complete, because another run may bundle the same state now.
  const fresh = `${directory}.${process.pid}`
  const { rolldown } = await import("rolldown")
  const bundle = await rolldown({
    input: Object.fromEntries(scripts.map((name) => [name, join(root, `${name}.ts`)])),
    platform: "node",
    tsconfig: false,
    external: /^[^./]/,
    plugins: [sourceLocations],
    checks: { ineffectiveDynamicImport: false },
  })
  await bundle.write({
    dir: fresh,
    entryFileNames: "[name].mjs",
    chunkFileNames: "[name]-[hash].mjs",
    banner: ({ isEntry }) => (isEntry ? storeCompiledCode : ""),
  })
  await bundle.close()
  try {
    renameSync(fresh, directory)
  } catch (error) {
    rmSync(fresh, { recursive: true })
    if (!existsSync(directory)) throw error
  }
  removeOldBundles()
}

/** Node stores compiled code when a process exits, but most of these processes are killed. */
const storeCompiledCode =
  'import { flushCompileCache } from "node:module"; globalThis.setTimeout(flushCompileCache, 200).unref();'

/** Lets a bundled source find the files beside it, such as the description of a tool. */
const sourceLocations: Plugin = {
  name: "source-locations",
  transform(code, path) {
    const values = { url: pathToFileURL(path).href, filename: path, dirname: join(path, "..") }
    return code.replaceAll(/\bimport\.meta\.(url|filename|dirname)\b/g, (_, key: keyof typeof values) =>
      JSON.stringify(values[key]),
    )
  },
}

/** Returns a digest of the paths, times and sizes of all sources except tests. */
function stateOfSources(): string {
  const digest = createHash("sha256")
  for (const directory of ["scripts", "src", "test"].map((name) => join(root, name)))
    for (const file of readdirSync(directory, { recursive: true, encoding: "utf8" }).toSorted()) {
      if (!file.endsWith(".ts") || file.endsWith(".test.ts")) continue
      const { mtimeMs, size } = statSync(join(directory, file))
      digest.update(`${directory}/${file} ${mtimeMs} ${size}\n`)
    }
  return digest.digest("hex").slice(0, 16)
}

const dayMs = 86_400_000

function removeOldBundles(): void {
  for (const name of readdirSync(bundles)) {
    const path = join(bundles, name)
    const changedAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
    if (changedAt < Date.now() - dayMs) rmSync(path, { recursive: true, force: true })
  }
}
