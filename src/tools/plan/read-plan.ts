import { open } from "node:fs/promises"
import { throwIfAborted } from "../../util/abort.ts"
import { systemCode, TackleError } from "../../util/errors.ts"

/** As much of a plan is shown, in bytes: longer than any that a person reads before they say yes. */
const maxBytes = 64 * 1024

/** There is nothing to show yet. The text says where the plan belongs. */
export class NoPlanError extends TackleError {
  constructor(file: string) {
    super(`No plan to show: ${file} is missing or empty. Write the plan there, then call plan_exit.`, {
      code: "plan.missing",
      recoverable: true,
    })
  }
}

/** The plan as the person reads it: a longer one is cut, with a note. Throws {@link NoPlanError}. */
export async function readPlan(file: string, signal: AbortSignal): Promise<string> {
  throwIfAborted(signal)
  const { bytes, size } = await readStart(file)
  const text = new TextDecoder().decode(bytes, { stream: true }).trim()
  if (text === "") throw new NoPlanError(file)
  return size > bytes.length ? `${text}\n\n[${size - bytes.length} more bytes: see ${file}]` : text
}

async function readStart(file: string): Promise<{ bytes: Uint8Array; size: number }> {
  try {
    await using handle = await open(file)
    const { size } = await handle.stat()
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.min(size, maxBytes)), 0)
    return { bytes: buffer.subarray(0, bytesRead), size }
  } catch (error) {
    if (systemCode(error) === "ENOENT" || systemCode(error) === "ENOTDIR") throw new NoPlanError(file)
    throw error
  }
}
