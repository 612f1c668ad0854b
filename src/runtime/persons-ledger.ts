import { readFileSync, statSync } from "node:fs"
import type { FileLedger, FileStamp } from "../tool/context.ts"
import { createFileLedger, stampBytes } from "../tool/ledger.ts"
import type { PathLocks } from "../tool/path-locks.ts"

/** The ledger of a call that a person makes by hand: they vouch for the file as it is now. */
export function createPersonsLedger(locks: PathLocks): FileLedger {
  const ledger = createFileLedger(locks)
  return { ...ledger, seen: (path) => ledger.seen(path) ?? stampNow(path) }
}

function stampNow(path: string): FileStamp | undefined {
  const found = statSync(path, { throwIfNoEntry: false })
  return found?.isFile() ? stampBytes(readFileSync(path), found.mtimeMs) : undefined
}
