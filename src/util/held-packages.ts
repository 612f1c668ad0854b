import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { type LoadHookSync, registerHooks } from "node:module"
import { basename, dirname } from "node:path"
import { fileURLToPath } from "node:url"
import { type PinnedFiles, UnpinnedFileError } from "./pinned-file.ts"

/** Installed packages whose modules have to be what they were when somebody looked at them. */
export interface HeldPackages {
  /** Real directories. All that is loaded from one of these, but for packages in it, has to stand in `files`. */
  roots: readonly string[]
  files: PinnedFiles
}

const files = new Map<string, string>()
const roots = new Set<string>()
let installed = false

/**
 * From now on, and in the whole process, nothing of these packages is loaded that is another: whoever imports it gets an
 * {@link UnpinnedFileError}. What is loaded already stays.
 */
export function holdPackages(held: HeldPackages): void {
  for (const root of held.roots) roots.add(root)
  for (const [path, hash] of held.files) files.set(path, hash)
  if (!installed && roots.size > 0) registerHooks({ load })
  installed ||= roots.size > 0
}

const load: LoadHookSync = (url, context, next) => {
  const path = url.startsWith("file:") ? fileURLToPath(url) : undefined
  if (path === undefined || !isHeld(path)) return next(url, context)
  const expected = files.get(path)
  if (expected === undefined) throw new UnpinnedFileError(path, "came after its package was trusted.")
  const loaded = next(url, context)
  if (hashOf(loaded.source, path) === expected) return loaded
  throw new UnpinnedFileError(path, "is not what was trusted: it has changed since. It was not run.")
}

/**
 * Of the bytes that Node gives, which are those that run. Of some modules it gives a text, of some nothing and reads the
 * file by itself, at once after this: then the file says it.
 */
function hashOf(source: ReturnType<LoadHookSync>["source"], path: string): string {
  const isBytes = source instanceof Uint8Array
  return createHash("sha256")
    .update(isBytes ? source : readFileSync(path))
    .digest("hex")
}

function isHeld(path: string): boolean {
  if (roots.size === 0) return false
  for (let directory = dirname(path); dirname(directory) !== directory; directory = dirname(directory)) {
    if (roots.has(directory)) return true
    if (basename(directory) === "node_modules") return false
  }
  return false
}
