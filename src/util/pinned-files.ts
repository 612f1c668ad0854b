import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import nodeModule, { type LoadHookSync } from "node:module"
import { basename, dirname } from "node:path"
import { fileURLToPath } from "node:url"
import { errorMessage, TackleError } from "./errors.ts"

/** Maps the real path of each file that a module may load to its SHA-256 in hex. */
export type PinnedFiles = ReadonlyMap<string, string>

/** Thrown for a file that differs from its pinned content or is not pinned. */
export class UnpinnedFileError extends TackleError {
  constructor(path: string, why: string) {
    super(`${path} ${why}`, { code: "module.unpinned", recoverable: false })
  }
}

const changed = "has changed since it was trusted. It was not run."

/** Returns the bytes of a file whose hash matches. Throws {@link UnpinnedFileError} for any other file. */
export function readPinned(path: string, pinned: PinnedFiles): Buffer {
  if (!readable.test(path)) throw new UnpinnedFileError(path, "is not JavaScript, TypeScript or JSON.")
  let bytes: Buffer
  try {
    bytes = readFileSync(path)
  } catch (error) {
    throw new UnpinnedFileError(path, `cannot be read: ${errorMessage(error)}`)
  }
  if (pinned.get(path) === sha256(bytes)) return bytes
  throw new UnpinnedFileError(path, changed)
}

/** Excludes native modules, because the system would read the file a second time. */
const readable = /\.(?:[mc]?js|m?ts|json)$/

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex")
}

/** Installed packages whose modules must match the hashes that the user trusted. */
export interface PinnedPackages {
  /** Real paths of directories. Every module below them must be in `files`, except modules of nested packages. */
  roots: readonly string[]
  files: PinnedFiles
}

const files = new Map<string, string>()
const roots = new Set<string>()
let installed = false

/**
 * Pins the packages for the rest of the process: importing a module that differs throws {@link UnpinnedFileError}. Has
 * no effect on modules that are already loaded.
 */
export function pinPackages(packages: PinnedPackages): void {
  for (const root of packages.roots) roots.add(root)
  for (const [path, hash] of packages.files) files.set(path, hash)
  if (!installed && roots.size > 0) nodeModule.registerHooks({ load })
  installed ||= roots.size > 0
}

const load: LoadHookSync = (url, context, next) => {
  const path = url.startsWith("file:") ? fileURLToPath(url) : undefined
  if (path === undefined || !isPinned(path)) return next(url, context)
  const expected = files.get(path)
  if (expected === undefined) throw new UnpinnedFileError(path, "was added after its package was trusted.")
  const loaded = next(url, context)
  if (hashOf(loaded.source, path) === expected) return loaded
  throw new UnpinnedFileError(path, changed)
}

/**
 * Hashes the bytes that will run. For some formats, Node passes a string or nothing and reads the file itself
 * afterwards. In that case, hashes the file.
 */
function hashOf(source: ReturnType<LoadHookSync>["source"], path: string): string {
  return sha256(source instanceof Uint8Array ? source : readFileSync(path))
}

function isPinned(path: string): boolean {
  for (let directory = dirname(path); dirname(directory) !== directory; directory = dirname(directory)) {
    if (roots.has(directory)) return true
    if (basename(directory) === "node_modules") return false
  }
  return false
}
