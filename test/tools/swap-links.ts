/**
 * Alternately replaces a path with a directory and with a symlink to another directory, until the process is killed:
 * node swap-links.ts <place> <directory> <target of the link>
 */
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync } from "node:fs"

const [place = "", directory = "", target = ""] = process.argv.slice(2)
process.stdout.write("swapping\n")
for (;;) {
  // The process under test may create the path at any moment. In this case, start again.
  try {
    renameSync(place, directory)
    symlinkSync(target, place)
    unlinkSync(place)
  } catch {
    clear()
  }
  putBack()
}

function putBack(): void {
  try {
    renameSync(directory, place)
  } catch {
    clear()
    mkdirSync(place, { recursive: true })
  }
}

function clear(): void {
  try {
    rmSync(place, { recursive: true, force: true })
  } catch {
    // The directory is not empty. The next round removes it.
  }
}
