import { mkdir, open } from "node:fs/promises"
import { join } from "node:path"

const pieceBytes = 65_536

/**
 * Returns the time in ms that the system takes to write a new file. Keeps the file, like the output of a command,
 * because a new file would reuse the memory of a removed file. On virtual machines, which provide memory page by page,
 * writing 500 MB takes 0.2 seconds if memory is reused, and 3 seconds if it is not.
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
