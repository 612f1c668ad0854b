import { readdirSync, statSync } from "node:fs"
import { join, resolve } from "node:path"
import { pathToFileURL } from "node:url"
import type { Plugin } from "rolldown"

const root = resolve(import.meta.dirname, "..")

/** Directory of the bundles. Below `node_modules`, because they import packages. */
const directory = join(root, "node_modules/.cache/test-processes")

/** Scripts that tests run in their own processes. */
const scripts = [
  "scripts/mcp-conformance-client",
  "test/engine/edit-process",
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
  return join(directory, `${name}.mjs`)
}

/**
 * Bundles the scripts if a source is newer. A process needs 0.25 s of processor time to load a bundle with the engine,
 * and 0.6 s to load several hundred sources.
 */
export default async function bundleProcessScripts(): Promise<void> {
  const newest = Math.max(...["scripts", "src", "test"].flatMap(filesBelow).map(changedAt))
  if (scripts.every((name) => changedAt(processScript(name)) > newest)) return
  const { rolldown } = await import("rolldown")
  const bundle = await rolldown({
    input: Object.fromEntries(scripts.map((name) => [name, join(root, `${name}.ts`)])),
    platform: "node",
    tsconfig: false,
    external: /^[^./]/,
    plugins: [sourceLocations],
    checks: { ineffectiveDynamicImport: false },
  })
  await bundle.write({ dir: directory, entryFileNames: "[name].mjs", chunkFileNames: "[name]-[hash].mjs" })
  await bundle.close()
}

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

/** Returns the sources below a directory, without the tests. */
function filesBelow(name: string): string[] {
  return readdirSync(join(root, name), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .map((file) => join(root, name, file))
}

/** Returns the time of the last change of a file, or 0 if the file does not exist. */
function changedAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}
