import { createHash } from "node:crypto"
import { errorMessage } from "../util/errors.ts"
import { treeOf } from "./parse.ts"
import { readSmallFile, type SmallFile } from "./read.ts"
import { type FileReader, type Surroundings, substitute } from "./substitute.ts"

/** What trust in a config is about: its own bytes, and those of every file that it puts in. */
export interface TrustContent {
  /**
   * sha256 in hex: of the file alone where it puts in none. Empty: it cannot be parsed, or puts in more than is looked at,
   * so that nobody can trust it.
   */
  hash: string
  /** Gives the files as they were when the hash was made, and no others. */
  read: FileReader
}

/** A config that puts in more files than these is not trusted, so that a hostile one cannot hold up the start. */
const maxFiles = 64

/**
 * Reads each file that the config puts in, once. One that is missing or cannot be read counts with its reason, so that
 * trust lapses when it comes. Of a config that cannot be parsed whoever loads it says what is wrong.
 */
export async function readTrustContent(
  { path, text, hash }: SmallFile & { path: string },
  around: Surroundings,
): Promise<TrustContent> {
  const files = new Map<string, PutIn>()
  const collect: FileReader = (file) => {
    if (!files.has(file)) files.set(file, files.size < maxFiles ? putIn(file) : tooMany)
    return { text: "", hash: "" }
  }
  const tree = await treeOf(path, text)
  if (tree) substitute(tree, { ...around, read: collect }, { warn: () => {}, fail: () => {} })
  return {
    hash: tree === undefined || [...files.values()].includes(tooMany) ? "" : hashOf(hash, files),
    read(file) {
      const found = files.get(file) ?? tooMany
      if ("reason" in found) throw found.cause
      return found.file
    },
  }
}

type PutIn = { file: SmallFile | undefined } | { reason: string; cause: unknown }

const tooMany: PutIn = {
  reason: "too many",
  cause: new RangeError(`more than ${maxFiles} files are put in by one config`),
}

function putIn(path: string): PutIn {
  try {
    return { file: readSmallFile(path) }
  } catch (cause) {
    return { reason: errorMessage(cause), cause }
  }
}

function hashOf(own: string, files: ReadonlyMap<string, PutIn>): string {
  if (files.size === 0) return own
  const lines = [...files].map(([path, found]) =>
    JSON.stringify([path, "reason" in found ? found.reason : (found.file?.hash ?? null)]),
  )
  return createHash("sha256")
    .update([own, ...lines].join("\n"))
    .digest("hex")
}
