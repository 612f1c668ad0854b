import { setTimeout as delay } from "node:timers/promises"
import { within } from "../../util/abort.ts"
import type { Exit, RunningProcess } from "../../util/process.ts"

/** How a call's process came to its end. */
export type Ending =
  /** By itself; `goesOn`: it left something running. */
  | { cause: "exit"; exit: Exit; goesOn: boolean }
  /** It was ended, with everything it started. */
  | { cause: "timeout" | "abort" }

/**
 * What is left gets so long to end or to write its last words, such as the `tee` of `> >(tee log)`. Short: the answer to
 * `server &` waits for it in full.
 */
const drainMs = 50
const pollMs = 5

/** Waits until the process itself ends, whatever holds its output open; at the timeout or the signal ends the tree. */
export async function supervise(
  process: RunningProcess,
  limits: { timeoutMs: number; signal: AbortSignal },
): Promise<Ending> {
  const first = await firstOf(process, limits)
  if (typeof first === "object") return { cause: "exit", exit: first, goesOn: await goesOn(process) }
  await process.kill()
  return { cause: first }
}

async function firstOf(
  process: RunningProcess,
  { timeoutMs, signal }: { timeoutMs: number; signal: AbortSignal },
): Promise<Exit | "timeout" | "abort"> {
  const { promise: cut, resolve } = Promise.withResolvers<"timeout" | "abort">()
  const timer = setTimeout(resolve, timeoutMs, "timeout")
  const onAbort = () => resolve("abort")
  signal.addEventListener("abort", onAbort, { once: true })
  if (signal.aborted) onAbort()
  try {
    return await Promise.race([process.exited, cut])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener("abort", onAbort)
  }
}

async function goesOn(process: RunningProcess): Promise<boolean> {
  const deadline = Date.now() + drainMs
  await within(process.closed, drainMs)
  // A process that just closed its output may take a moment more to be gone.
  while (process.running() && Date.now() < deadline) await delay(pollMs)
  return process.running()
}
