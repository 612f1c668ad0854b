/**
 * What is published has another package.json than a clone: `strip`, which npm calls before it packs, takes out what only
 * a clone needs (Node itself, development, scripts), and `restore` puts it back. The full text waits in a file beside
 * it. Where packing broke off in between, the next of either goes on from there.
 *
 * Only tarballs are published (`npm pack`, then `npm publish tackle-….tgz`): from a directory npm tells the registry
 * what package.json says after `postpack`, which is the clone's.
 */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"

const root = resolve(import.meta.dirname, "..")
const manifest = join(root, "package.json")
const backup = join(root, "package.json.full")

const [command] = process.argv.slice(2)
if (command === "strip") strip()
else if (command === "restore") restore()
else fail("say what to do: strip or restore.")

function strip(): void {
  if (process.env.npm_command === "publish")
    fail("publish the file that `npm pack` makes, not the directory.")
  restore()
  const full = readFileSync(manifest, "utf8")
  writeFileSync(backup, full)
  replace(manifest, stripped(full))
}

function restore(): void {
  if (!existsSync(backup)) return
  const full = readFileSync(backup, "utf8")
  const current = readFileSync(manifest, "utf8")
  if (current !== stripped(full) && current !== full) {
    fail(
      `${manifest} was changed while it was stripped. Bring the change into ${backup} and rename that to package.json.`,
    )
  }
  renameSync(backup, manifest)
}

/** The published text. What else stands in the file stays as it is. */
function stripped(full: string): string {
  const {
    devDependencies: _,
    scripts: __,
    allowScripts: ___,
    optionalDependencies = {},
    ...rest
  } = JSON.parse(full)
  const optional = Object.entries(optionalDependencies).filter(([name]) => !name.startsWith("node-linux-"))
  const published =
    optional.length > 0 ? { ...rest, optionalDependencies: Object.fromEntries(optional) } : rest
  return `${JSON.stringify(published, null, 2)}\n`
}

/** Whole or not at all. */
function replace(path: string, text: string): void {
  writeFileSync(`${path}.new`, text)
  try {
    renameSync(`${path}.new`, path)
  } finally {
    rmSync(`${path}.new`, { force: true })
  }
}

function fail(message: string): never {
  console.error(`pack: ${message}`)
  process.exit(1)
}
