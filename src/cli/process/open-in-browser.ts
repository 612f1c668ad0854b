import { type ChildProcess, spawn } from "node:child_process"
import { findProgram, type ProgramLocations } from "../../util/find-program.ts"

/**
 * Opens an address, or the file at a path, with `open` or `xdg-open`. Returns undefined if this program is not
 * installed. Programs in the worktree and in relative directories in `PATH` are not used. The returned process does not
 * keep Tackle running. It emits `error` if it cannot be started. Its exit code is not 0 if no browser is found.
 */
export function openInBrowser(
  address: string,
  locations: Omit<ProgramLocations, "trusted">,
): ChildProcess | undefined {
  const name = process.platform === "darwin" ? "open" : "xdg-open"
  const program = findProgram(name, { ...locations, trusted: false })
  if (program === undefined) return undefined
  const child = spawn(program, [address], { detached: true, stdio: "ignore" })
  child.unref()
  return child
}
