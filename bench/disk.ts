import { mkdir, open } from "node:fs/promises"
import { join } from "node:path"

const pieceBytes = 65_536

/**
 * Measures how long the system takes to write a new file, in milliseconds. The file stays, like the output of a command:
 * after a file is removed, the next one reuses its memory. On virtual machines, which provide memory page by page, the same
 * 500 MB take 0.2 or 3 seconds depending on that.
 */
export async function diskMs(bytes: number, directory: string): Promise<number> {
  const piece = Buffer.alloc(pieceBytes, "a line of text\n")
  await mkdir(directory, { recursive: true })
  const file = await open(join(directory, `disk-${performance.now()}`), "wx")
  try {
    const start = performance.now()
    for (let written = 0; written < bytes; written += pieceBytes) await file.write(piece)
    return performance.now() - start
  } finally {
    await file.close()
  }
}
