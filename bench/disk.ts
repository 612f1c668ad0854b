import { open, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { median } from "./statistics.ts"

const pieceBytes = 65_536

/**
 * What the system takes for so many bytes into new files, one after the other and all kept meanwhile, as the output of
 * commands is: the median of three, in milliseconds. On virtual machines, where memory is lent out page by page, that
 * is between 0.3 and 3 seconds for the same 500 MB, and nothing that a program does changes it.
 */
export async function diskMs(bytes: number): Promise<number> {
  const piece = Buffer.alloc(pieceBytes, "a line of text\n")
  const paths = [1, 2, 3].map((number) => join(tmpdir(), `tackle-bench-disk-${process.pid}-${number}`))
  const times: number[] = []
  try {
    for (const path of paths) {
      const file = await open(path, "w")
      const start = performance.now()
      for (let written = 0; written < bytes; written += pieceBytes) await file.write(piece)
      times.push(performance.now() - start)
      await file.close()
    }
  } finally {
    for (const path of paths) await rm(path, { force: true })
  }
  return median(times)
}
