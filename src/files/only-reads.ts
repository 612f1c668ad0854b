import { planCommand } from "../permission/shell/plan.ts"
import { proveReadOnly } from "../permission/shell/read-only.ts"

/** True for a command text that is proved to change no file: it need not be watched. */
export async function onlyReads(text: string): Promise<boolean> {
  const { commands, files, opaque, garbled } = await planCommand(text)
  if (opaque !== undefined || garbled || commands.length === 0) return false
  const written = files.filter(({ kind, target }) => kind === "write" && target.text !== "/dev/null")
  return written.length === 0 && commands.every((command) => proveReadOnly(command))
}
