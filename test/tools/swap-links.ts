/**
 * Puts a directory and a link to another in one place, in turns and as fast as it can, until it is killed:
 * node swap-links.ts <place> <directory> <target of the link>
 */
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync } from "node:fs"

const [place = "", directory = "", target = ""] = process.argv.slice(2)
process.stdout.write("swapping\n")
for (;;) {
  // Whoever writes into the place may make it anew at any moment; then the turn begins again.
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
    // Something was put into it just now: the next turn takes it away.
  }
}
