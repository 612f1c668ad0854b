import { closeSync, mkdirSync, openSync, writeSync } from "node:fs"
import { join } from "node:path"
import type { MaskedStream, SecretMask } from "./secrets.ts"

/** 1 GB: past this a spill file takes no more, so that a runaway command cannot fill the disk. */
export const maxSpillBytes = 1_000_000_000

/** Full output on its way to disk. Writes are in order; nothing is buffered beyond what the system takes. */
export interface SpillFile {
  /** Absolute path: `<data>/truncate/<sessionID>/tool_<id>_<n>.txt`. */
  readonly path: string
  /** Bytes on disk. */
  readonly bytes: number
  /** True once the file reached its limit: its last line says so. */
  readonly capped: boolean
  /** Appends. Past the limit nothing more is written. Throws when the disk refuses (full, read-only). */
  write(chunk: Uint8Array | string): void
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
  const descriptor = openSync(path, "w", 0o600)
  let bytes = 0
  let capped = false
  let closed = false

  function put(chunk: Uint8Array): void {
    for (let offset = 0; offset < chunk.length; ) {
      const written = writeSync(descriptor, chunk, offset)
      offset += written
      bytes += written
    }
  }

  return {
    path,
    get bytes() {
      return bytes
    },
    get capped() {
      return capped
    },
    write(chunk) {
      if (capped || closed) return
      const data = typeof chunk === "string" ? Buffer.from(chunk) : chunk
      const room = maxBytes - bytes
      put(data.length > room ? data.subarray(0, room) : data)
      if (data.length <= room) return
      capped = true
      put(Buffer.from(`\n[This file ends here: it reached its limit of ${maxBytes} bytes.]\n`))
    },
    close() {
      if (closed) return
      closed = true
      closeSync(descriptor)
    },
  }
}
