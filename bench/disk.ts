import { mkdir, open } from "node:fs/promises"
import { join } from "node:path"

const pieceBytes = 65_536

/**
 * What the system takes for so many bytes into a new file in the directory, in milliseconds. The file stays, as the output of a command
 * does: where one was removed before, the next is written to memory that is at hand. On virtual machines, which lend
 * memory out page by page, that makes 0.2 or 3 seconds of the same 500 MB, and nothing that a program does changes it.
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
