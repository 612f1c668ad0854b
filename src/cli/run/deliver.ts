import type { Tackle } from "../../engine/tackle.ts"
import { createBus } from "../../event/bus.ts"
import type { EventOf } from "../../event/events.ts"
import type { SessionHandle } from "../../session/handle.ts"
import { createInputQueue, type InputQueue } from "../../session/inputs.ts"
import type { LeaseHolder } from "../../store/store.ts"
import { TimeoutError } from "../../util/abort.ts"
import { identifyProcess, isThisProcess } from "../../util/process-table.ts"
import { exitCode } from "../process/exit.ts"
import type { Foreground } from "./foreground.ts"

/** Opens a session's queue for changes that do not start a run. */
export function openQueue({ store }: Tackle, sessionID: string): InputQueue {
  const holder = { id: "", ...identifyProcess() }
  return createInputQueue({ store, bus: createBus(() => {}), sessionID, holder })
}

/** Returns the other process that uses the session, or undefined if no other process does. */
export async function otherProcess({ store }: Tackle, sessionID: string): Promise<LeaseHolder | undefined> {
  const holder = await store.holder(sessionID)
  return holder && !isThisProcess(holder) ? holder : undefined
}

/** Interval in milliseconds between checks for another process that uses the session. */
const checkMs = 200

/**
 * Calls `start`, which starts the work on a session. Then waits until this process has delivered all inputs. Stops
 * waiting if another process uses the session, because that process then delivers the inputs. An interrupt stops the
 * run and pauses the queue. Returns the exit code.
 */
export async function runAndDeliver(
  session: SessionHandle,
  { tackle, signal }: Pick<Foreground, "tackle" | "signal">,
  start: () => Promise<unknown>,
): Promise<number> {
  const ends: EventOf<"run.completed">[] = []
  const stopWatching = tackle.on("run.completed", (end) => {
    if (end.sessionID === session.id) ends.push(end)
  })
  let stopping: Promise<unknown> = Promise.resolve()
  const stop = () => {
    // If the queue cannot be paused, the run still ends, and reports the store's error.
    stopping = session.interrupt().catch(() => {})
  }
  signal.addEventListener("abort", stop, { once: true })
  if (signal.aborted) stop()
  try {
    await start()
    await whileOurs(session, { tackle, signal })
  } finally {
    signal.removeEventListener("abort", stop)
    await stopping
    stopWatching()
  }
  return codeOf(ends, signal)
}

async function whileOurs(
  session: SessionHandle,
  { tackle, signal }: Pick<Foreground, "tackle" | "signal">,
): Promise<void> {
  const leave = new AbortController()
  const check = async () => {
    if (await otherProcess(tackle, session.id)) leave.abort()
  }
  const timer = setInterval(() => void check().catch(() => {}), checkMs)
  try {
    await session.wait({ signal: AbortSignal.any([signal, leave.signal]) })
  } catch (error) {
    if (!signal.aborted && !leave.signal.aborted) throw error
  } finally {
    clearInterval(timer)
  }
}

/** Exit codes for runs, most important first. */
const ranked = [exitCode.interrupted, exitCode.usage, exitCode.failed, exitCode.limit, exitCode.refused]

/**
 * Returns the exit code for several runs. An interrupted run counts only if it is the last, because an urgent input
 * also interrupts a run.
 */
function codeOf(ends: readonly EventOf<"run.completed">[], signal: AbortSignal): number {
  if (signal.aborted && ends.length === 0)
    return signal.reason instanceof TimeoutError ? exitCode.limit : exitCode.interrupted
  const last = ends.at(-1)
  const counted = ends.filter((end) => end.status !== "interrupted" || end === last)
  return ranked.find((code) => counted.some((end) => end.exitCode === code)) ?? exitCode.finished
}
