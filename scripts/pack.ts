/**
 * Prepares package.json for publishing. npm runs `strip` before packing. `strip` removes the fields that only a clone
 * of the repository needs: Node itself, development dependencies and scripts. `restore` restores the file from a
 * backup. If `strip` is interrupted, the next run restores the file first.
 *
 * Publish only tarballs (`npm pack`, then `npm publish tackle-….tgz`). If a directory is published, npm sends the
 * package.json that exists after `postpack`, which is the clone's file.
 */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"

const root = resolve(import.meta.dirname, "..")
const manifest = join(root, "package.json")
const backup = join(root, "package.json.full")

const [command] = process.argv.slice(2)
if (command === "strip") strip()
else if (command === "restore") restore()
else fail("expected an argument: strip or restore.")

function strip(): void {
  if (process.env.npm_command === "publish")
    fail("publish the file that `npm pack` creates instead of the directory.")
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
      `${manifest} was changed while it was stripped. Apply the change to ${backup} and rename it to package.json.`,
    )
  }
  renameSync(backup, manifest)
}

/** Returns the text to publish. Keeps all other fields unchanged. */
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

/** Replaces the file atomically. */
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
