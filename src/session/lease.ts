import { hostname } from "node:os"
import type { Lease, LeaseHolder, LeaseLimit, Store } from "../store/store.ts"
import { orAbort, within } from "../util/abort.ts"
import { TackleError } from "../util/errors.ts"
import type { SessionStatus } from "./handle.ts"
import { isBelow } from "./lineage.ts"

/** Thrown when another engine, in this or another process, is using the session. */
export class SessionHeldError extends TackleError {
  constructor(id: string, holder: LeaseHolder) {
    const where = holder.host === undefined || holder.host === hostname() ? "" : ` on ${holder.host}`
    super(
      `Session ${id} is in use by process ${holder.pid}${where}. Wait until that process has finished with the session, or interrupt the session. Nothing was changed.`,
      { code: "session.held", recoverable: false },
    )
  }
}

/**
 * Runs `work` with a lease: the exclusive right to write to the session. Before `work` starts, throws {@link
 * SessionHeldError} if another engine is using the session, and `TenantLimitError` if the tenant has reached its limit.
 *
 * After `work` succeeds, `release` ends the lease. If `work` or `release` fails, `settle` closes the calls that are
 * still open, and the lease ends. If `settle` also fails, the lease is kept, and the next start of Tackle closes these
 * calls. If `passesOn` returns true when the lease ends, another worker
 * continues the session.
 */
export async function withLease<T>(
  {
    store,
    sessionID,
    holder,
    limit,
    settle = async () => {},
    passesOn = () => false,
    release = (lease) => store.release(lease),
  }: Use & {
    limit?: LeaseLimit
    settle?: () => Promise<void>
    passesOn?: () => boolean
    release?: (lease: Lease) => Promise<void>
  },
  work: (lease: Lease) => Promise<T>,
): Promise<T> {
  const taken = await store.lease(sessionID, holder, limit)
  if (!taken.isHeld) throw new SessionHeldError(sessionID, taken.holder)
  const { lease } = taken
  try {
    const result = await work(lease)
    await (passesOn() ? store.release(lease, { passesOn: true }) : release(lease))
    return result
  } catch (error) {
    const isClosed = await settle().then(
      () => true,
      () => false,
    )
    if (isClosed) await store.release(lease, { passesOn: passesOn() })
    throw error
  }
}

/** The use of one session by one engine. */
interface Use {
  store: Store
  sessionID: string
  holder: LeaseHolder
}

/** Runs `work` with the leases of several sessions. See {@link withLease}. */
export function withLeases<T>(
  { store, sessionIDs, holder }: { store: Store; sessionIDs: readonly string[]; holder: LeaseHolder },
  work: () => Promise<T>,
): Promise<T> {
  return sessionIDs.reduceRight(
    (inner, sessionID) => () => withLease({ store, sessionID, holder }, inner),
    work,
  )()
}

/** Returns true if a live engine, including this one, is using one of the sessions. */
export async function isAnyHeld(store: Store, sessionIDs: readonly string[]): Promise<boolean> {
  for (const id of sessionIDs) {
    if ((await store.holder(id)) !== undefined) return true
  }
  return false
}

/**
 * Interval in milliseconds between checks while another engine uses a session. The checks are necessary because the end
 * of a killed process is not reported.
 */
const checkMs = 1_000

/** The same interval if every expected change is a write, and is therefore reported. */
const seenCheckMs = 10_000

/**
 * Waits until `isTrue` resolves with true. Checks again when the session's lease ends, and at least once per second.
 * With `seesWrites`, checks again when another engine has written to the session, and otherwise only every ten seconds.
 * Rejects if the signal aborts.
 */
export async function waitForLease(
  { store, sessionID, seesWrites = false }: Pick<Use, "store" | "sessionID"> & { seesWrites?: boolean },
  isTrue: () => Promise<boolean>,
  signal: AbortSignal = new AbortController().signal,
): Promise<void> {
  let changed = Promise.withResolvers<void>()
  const unwatchControl = store.watchControl((change) => {
    if (!change || (change.sessionID === sessionID && change.what === "lease")) changed.resolve()
  })
  const unwatch = seesWrites
    ? store.watch((sessionIDs) => {
        if (sessionIDs?.has(sessionID) !== false) changed.resolve()
      })
    : undefined
  try {
    while (!(await isTrue())) {
      await within(orAbort(changed.promise, signal), seesWrites ? seenCheckMs : checkMs)
      changed = Promise.withResolvers<void>()
    }
  } finally {
    unwatchControl()
    unwatch?.()
  }
}

/**
 * Asks another engine that runs the session to stop, and waits until that engine has stopped. If no other engine runs
 * the session, or if the other engine is no longer alive, `settle` closes the calls of a killed run.
 */
export async function stopElsewhere(
  { store, sessionID, holder }: Use,
  settle: () => Promise<void>,
): Promise<void> {
  const present = await store.holder(sessionID)
  const lease = present && present.id !== holder.id ? await store.stop(sessionID) : undefined
  if (!lease || lease.holder.id === holder.id) return settle()
  const isHeld = async () => (await store.holder(sessionID)) !== undefined
  const isOver = async () => !(await store.isStopping(lease)) || !(await isHeld())
  do {
    await waitForLease({ store, sessionID }, isOver)
    if (await store.isStopping(lease)) await settle()
    // An engine that was slow to renew its lease appears dead for a moment.
  } while ((await store.isStopping(lease)) && (await isHeld()))
}

/** Information about a session that an engine has without reading the store. */
export interface LocalActivity {
  /** True while the engine runs the session or delivers its inputs. */
  isActive?: boolean
  /** Ids of the sessions whose requests in this engine wait for the user. */
  asking: readonly string[]
}

/** Returns the status of a stored session across all processes. */
export async function sessionStatus(
  store: Store,
  id: string,
  { isActive = false, asking }: LocalActivity = { asking: [] },
): Promise<SessionStatus> {
  const isWaiting = async (sessionIDs: readonly string[]) => {
    for (const each of new Set(sessionIDs)) if (await isBelow(store, each, id)) return true
    return false
  }
  if (await isWaiting(asking)) return "waiting"
  if (!isActive && (await store.holder(id)) === undefined) return "idle"
  return (await isWaiting((await store.requests()).map(({ asked }) => asked.sessionID)))
    ? "waiting"
    : "running"
}
