import { setTimeout as delay } from "node:timers/promises"
import { within } from "../../util/abort.ts"
import type { Exit, RunningProcess } from "../../util/process.ts"

/** How a call's process came to its end. */
export type Ending =
  /** By itself; `goesOn`: it left something running. */
  | { cause: "exit"; exit: Exit; goesOn: boolean }
  /** It was ended, with everything it started. */
  | { cause: "timeout" | "abort" }
  /** It still runs, and is not waited for. */
  | { cause: "handed-over" }

/**
 * What is left gets so long to end or to write its last words, such as the `tee` of `> >(tee log)`. Short: the answer to
 * `server &` waits for it in full.
 */
const drainMs = 50
const pollMs = 5

/** How long and for what a call waits. */
interface Patience {
  timeoutMs: number
  signal: AbortSignal
  /** Leaves the process alone after so long. */
  handOverMs?: number
}

/** Waits until the process itself ends, whatever holds its output open; at the timeout or the signal ends the tree. */
export async function supervise(process: RunningProcess, patience: Patience): Promise<Ending> {
  const first = await firstOf(process, patience)
  if (first === "handed-over") return { cause: first }
  if (typeof first === "object") return { cause: "exit", exit: first, goesOn: await goesOn(process) }
  await process.kill()
  return { cause: first }
}

async function firstOf(
  process: RunningProcess,
  { timeoutMs, signal, handOverMs }: Patience,
): Promise<Exit | "timeout" | "abort" | "handed-over"> {
  const { promise: cut, resolve } = Promise.withResolvers<"timeout" | "abort" | "handed-over">()
  const timer = setTimeout(resolve, timeoutMs, "timeout")
  const handOver = handOverMs === undefined ? undefined : setTimeout(resolve, handOverMs, "handed-over")
  const onAbort = () => resolve("abort")
  signal.addEventListener("abort", onAbort, { once: true })
  if (signal.aborted) onAbort()
  try {
    return await Promise.race([process.exited, cut])
  } finally {
    clearTimeout(timer)
    clearTimeout(handOver)
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
