import { startConfined } from "../../sandbox/sandbox.ts"
import type { ToolContext } from "../../tool/context.ts"
import { type RecordTree, type RunningProcess, startProcess } from "../../util/process.ts"

/** A shell with the text it was given. */
export interface ShellCommand {
  text: string
  argv: readonly [string, ...string[]]
  env: Readonly<Record<string, string | undefined>>
  cwd: string
  /** Not in the sandbox. Leave for that was given. */
  outside: boolean
  /** Its input stays open, and it is a job as soon as it has begun. */
  stdin: boolean
}

/** A command under way. */
export interface StartedCommand {
  process: RunningProcess
  /** It runs in a sandbox. */
  sandboxed: boolean
  /** To be called when it ended, unless it goes on as a job. */
  ended(): void
}

/** Starts a command, in the sandbox where there is one. Throws `SpawnError`, `PipeError` and `SandboxError`. */
export async function startCommand(
  { text, argv, env, cwd, outside, stdin }: ShellCommand,
  { sandbox }: Pick<ToolContext, "sandbox">,
  { onOutput, record }: { onOutput: (bytes: Uint8Array) => void; record: RecordTree | undefined },
): Promise<StartedCommand> {
  const confined = outside ? undefined : await sandbox?.confine({ text, argv, env, cwd })
  if (!confined) {
    const process = await startProcess({ argv, cwd, env, onOutput, input: stdin, record })
    return { process, sandboxed: false, ended: () => {} }
  }
  try {
    const process = await startConfined(confined, onOutput, { input: stdin, record })
    return { process, sandboxed: true, ended: confined.ended }
  } catch (error) {
    confined.ended()
    throw error
  }
}
