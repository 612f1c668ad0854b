import type { PinnedFiles } from "../util/module-graph.ts"
import type { TreeIdentity } from "../util/process-tree.ts"

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
  /** Writes a started tree down, so that it is ended where this process is killed; the function strikes it out. */
  record?(identity: TreeIdentity | undefined): () => void
}
