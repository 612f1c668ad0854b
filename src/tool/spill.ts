import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { openWriteBehind } from "../files/write-behind.ts"
import type { MaskedStream, SecretMask } from "./secrets.ts"

/** 1 GB: past this a spill file takes no more, so that a runaway command cannot fill the disk. */
export const maxSpillBytes = 1_000_000_000

/** Full output on its way to disk. At most one piece of it is not there yet, see {@link openWriteBehind}. */
export interface SpillFile {
  /** Absolute path: `<data>/truncate/<sessionID>/tool_<id>_<n>.txt`. */
  readonly path: string
  /** Bytes taken. */
  readonly bytes: number
  /** True once the file reached its limit: its last line says so. */
  readonly capped: boolean
  /** Appends. Past the limit nothing more is written. Throws when the disk refuses (full, read-only). */
  write(chunk: Uint8Array | string): void
  /** Returns when what was written is on disk, but for an end that may become a secret. Throws like `write`. */
  settle(): void
  /** Settles the whole, then takes no more. Throws like `write`. */
  close(): void
}

/** Opens the next spill file of one call. Throws when the disk refuses. */
export type SpillOpener = () => SpillFile

/** Spill files of one call, numbered from 1. The directory is made when the first is opened. */
export function createSpillOpener(options: {
  directory: string
  name: string
  maxBytes?: number
  /** What must not be on disk either. */
  mask?: SecretMask
}): SpillOpener {
  let opened = 0
  return () => {
    mkdirSync(options.directory, { recursive: true })
    opened += 1
    const path = join(options.directory, `tool_${options.name}_${opened}.txt`)
    const file = openSpillFile(path, options.maxBytes ?? maxSpillBytes)
    return options.mask ? masked(file, options.mask.stream()) : file
  }
}

/** The file without secrets: its last bytes come when it is closed. */
function masked(file: SpillFile, stream: MaskedStream): SpillFile {
  let open = true
  return {
    path: file.path,
    get bytes() {
      return file.bytes
    },
    get capped() {
      return file.capped
    },
    write(chunk) {
      if (open) file.write(stream.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk))
    },
    settle: () => file.settle(),
    close() {
      if (!open) return
      open = false
      try {
        file.write(stream.end())
      } finally {
        file.close()
      }
    },
  }
}

function openSpillFile(path: string, maxBytes: number): SpillFile {
  const file = openWriteBehind(path)
  let capped = false
  let closed = false

  return {
    path,
    get bytes() {
      return file.bytes
    },
    get capped() {
      return capped
    },
    write(chunk) {
      if (capped || closed) return
      const data = typeof chunk === "string" ? Buffer.from(chunk) : chunk
      const room = maxBytes - file.bytes
      file.append(data.length > room ? data.subarray(0, room) : data)
      if (data.length <= room) return
      capped = true
      file.append(Buffer.from(`\n[Truncated: this file reached its limit of ${maxBytes} bytes.]\n`))
    },
    settle() {
      if (!closed) file.settle()
    },
    close() {
      if (closed) return
      closed = true
      file.close()
    },
  }
}
