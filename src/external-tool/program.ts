import type { PinnedFiles } from "../util/pinned-files.ts"
import type { RecordTree } from "../util/process.ts"

/** An executable that speaks the protocol, and what every start of it needs. */
export interface Program {
  /** The tool's id. */
  name: string
  /** Absolute. */
  path: string
  /** All that may run of it: it is then run from a private copy of these bytes. Absent: it is run as it is. */
  pinned?: PinnedFiles
  host: ProgramHost
}

/** What programs are started with. */
export interface ProgramHost {
  /** Where `--describe` runs. Absolute. */
  directory: string
  /** Where private copies lie. Absolute; made when needed. */
  copies: string
  environment: Readonly<Record<string, string | undefined>>
  record?: RecordTree
}
