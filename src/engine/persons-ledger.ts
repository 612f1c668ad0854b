import { readFileSync, statSync } from "node:fs"
import {
  createFileTracker,
  type FileCommits,
  type FileStamp,
  type FileTracker,
  stampBytes,
} from "../files/file-tracker.ts"

/** The ledger of a call that a person makes by hand: they vouch for the file as it is now. */
export function createPersonsLedger(commits: FileCommits): FileTracker {
  const ledger = createFileTracker(commits)
  return { ...ledger, seen: (path) => ledger.seen(path) ?? stampNow(path) }
}

function stampNow(path: string): FileStamp | undefined {
  const found = statSync(path, { throwIfNoEntry: false })
  return found?.isFile() ? stampBytes(readFileSync(path), found.mtimeMs) : undefined
}
