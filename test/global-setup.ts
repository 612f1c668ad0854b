import { execFileSync } from "node:child_process"
import { readdirSync, statSync } from "node:fs"
import { join, resolve } from "node:path"

const root = resolve(import.meta.dirname, "..")

/** Builds the command if a source is newer, so that tests never run an old build. */
export default function buildOnce(): void {
  const built = statSync(join(root, "dist/cli/main.cjs"), { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (
    newest("src") <= built &&
    newest("web") <= built &&
    newest("scripts") <= built &&
    newest("package.json") <= built
  )
    return
  execFileSync(process.execPath, [join(root, "scripts/build.ts")], { stdio: "inherit" })
}

/** Returns the time of the last change of a file, or of anything below a directory. */
function newest(name: string): number {
  const path = join(root, name)
  if (statSync(path).isFile()) return statSync(path).mtimeMs
  const entries = readdirSync(path, { recursive: true, withFileTypes: true })
  return Math.max(...entries.map((entry) => statSync(join(entry.parentPath, entry.name)).mtimeMs))
}
