import { errorMessage } from "../util/errors.ts"
import type { SpillFile, SpillOpener } from "./spill.ts"

/** The whole of an output on its way to disk, as far as the disk takes it. */
export interface FullText {
  /** Undefined until something is on disk. */
  readonly path: string | undefined
  /** Bytes on disk, once settled. */
  readonly bytes: number
  /** True once the file reached its limit and ends before the output does. */
  readonly capped: boolean
  /** Why it is not complete, in the system's words. */
  readonly problem: string | undefined
  /** Appends. Never throws: an output is worth giving also when the disk is full. */
  write(chunk: Uint8Array | string): void
  /** Returns when what was written is on disk, or `problem` says why it is not. */
  settle(): void
  /** Settles, then takes no more. */
  close(): void
}

/** Opens the spill file with the first write. After a failure nothing more is written. */
export function createFullText(open: SpillOpener): FullText {
  let file: SpillFile | undefined
  let problem: string | undefined

  function attempt(work: () => void): void {
    try {
      work()
    } catch (error) {
      problem ??= errorMessage(error)
    }
  }

  return {
    get path() {
      return file && file.bytes > 0 ? file.path : undefined
    },
    get bytes() {
      return file?.bytes ?? 0
    },
    get capped() {
      return file?.capped ?? false
    },
    get problem() {
      return problem
    },
    write(chunk) {
      if (problem !== undefined) return
      attempt(() => {
        file ??= open()
        file.write(chunk)
      })
    },
    settle() {
      attempt(() => file?.settle())
    },
    close() {
      attempt(() => file?.close())
    },
  }
}
