import { type ProcessOptions, type RunningProcess, startProcess } from "../util/process.ts"
import { privateCopy } from "./private-copy.ts"
import type { Program } from "./program.ts"

/**
 * Starts the program, or the private copy of what was trusted of it, in a process group of its own. Throws `SpawnError`,
 * `PipeError` and `ExternalToolError`.
 */
export async function startProgram(
  { path, pinned, host }: Program,
  options: { args: readonly string[]; cwd: string } & Pick<
    ProcessOptions,
    "input" | "onOutput" | "onErrorOutput"
  >,
): Promise<RunningProcess> {
  const { args, ...rest } = options
  const file = pinned ? privateCopy(path, pinned, host.copies) : path
  const { environment: env, record } = host
  const child = await startProcess({ ...rest, argv: [file, ...args], env, record })
  // Neither rejects.
  void Promise.all([child.exited, child.closed]).then(() => child.removeRecords())
  return child
}
