import { createHash, randomBytes } from "node:crypto"
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { dirname, isAbsolute, join, relative, sep } from "node:path"
import { realPath } from "../util/paths.ts"
import type { PinnedFiles } from "../util/pinned-files.ts"
import { ExternalToolError } from "./protocol.ts"

/**
 * Copies a program and the pinned files in its directory and subdirectories, and returns the path of the copy. The
 * bytes are checked against their hashes after reading, so later changes to the original have no effect. An existing
 * copy is replaced if it differs. Throws {@link ExternalToolError} if the program is not trusted, if a file has changed
 * since it was trusted, or if the interpreter path is relative.
 */
export function privateCopy(path: string, pinned: PinnedFiles, copies: string): string {
  const program = realPath(path)
  const files = filesOf(program, pinned)
  const copy = join(copies, nameOf(files))
  if (isWhole(copy, files)) noteUse(copy)
  else write(copy, files, dirname(program), pinned)
  const copied = join(copy, relative(dirname(program), program))
  assertKnownInterpreter(readFileSync(copied), path)
  return copied
}

/** Hashes of the files, keyed by their paths in the copy. */
type CopiedFiles = ReadonlyMap<string, string>

function filesOf(program: string, pinned: PinnedFiles): CopiedFiles {
  if (!pinned.has(program))
    throw new ExternalToolError(
      `${program} is not trusted. To review and trust it, run tackle trust.`,
      "copy",
    )
  const below = [...pinned].map(([file, hash]) => [relative(dirname(program), file), hash] as const)
  return new Map(below.filter(([file]) => !isAbsolute(file) && file.split(sep)[0] !== "..").sort())
}

function nameOf(files: CopiedFiles): string {
  return createHash("sha256")
    .update(JSON.stringify([...files]))
    .digest("hex")
}

/** Returns true if the directory contains exactly these files with matching hashes. */
function isWhole(copy: string, files: CopiedFiles): boolean {
  try {
    const found = readdirSync(copy, { recursive: true, withFileTypes: true })
    const others = found.filter((entry) => !entry.isDirectory())
    return (
      others.length === files.size &&
      others.every((entry) => {
        const file = join(entry.parentPath, entry.name)
        return entry.isFile() && files.get(relative(copy, file)) === hash(readFileSync(file))
      })
    )
  } catch {
    // The copy is missing or unreadable and will be replaced.
    return false
  }
}

/** Marks the copy as used, so that the cleanup does not delete it. */
function noteUse(copy: string): void {
  const now = new Date()
  utimesSync(copy, now, now)
}

/** Writes the copy atomically: writes a temporary directory and renames it. */
function write(copy: string, files: CopiedFiles, from: string, pinned: PinnedFiles): void {
  const temporary = `${copy}.${randomBytes(6).toString("hex")}`
  try {
    for (const file of files.keys()) {
      const source = join(from, file)
      const bytes = readFileSync(source)
      if (hash(bytes) !== pinned.get(source))
        throw new ExternalToolError(`${source} has changed since it was trusted. It was not run.`, "copy")
      mkdirSync(dirname(join(temporary, file)), { recursive: true, mode: 0o700 })
      writeFileSync(join(temporary, file), bytes, { mode: isExecutable(source) ? 0o500 : 0o400, flag: "wx" })
    }
    rmSync(copy, { recursive: true, force: true })
    renameSync(temporary, copy)
  } catch (error) {
    // Another process may have written an identical copy.
    if (!isWhole(copy, files)) throw error
  } finally {
    rmSync(temporary, { recursive: true, force: true })
  }
}

/**
 * Throws {@link ExternalToolError} if the path after `#!` is relative, because the system resolves a relative path in
 * the working directory, whose files the user has not trusted.
 */
function assertKnownInterpreter(bytes: Buffer, path: string): void {
  const [, interpreter] = /^#![ \t]*(\S*)/.exec(bytes.subarray(0, 256).toString("latin1")) ?? []
  if (interpreter === undefined || isAbsolute(interpreter)) return
  throw new ExternalToolError(
    `${path}:1 has the relative interpreter path "${interpreter}", which the user has not trusted. Use an absolute path, as in #!/usr/bin/env python3.`,
    "copy",
  )
}

function isExecutable(path: string): boolean {
  return (statSync(path).mode & 0o111) !== 0
}

function hash(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex")
}
