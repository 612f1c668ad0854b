import { setTimeout as delay } from "node:timers/promises"
import { systemCode } from "./errors.ts"
import {
  hasEnvironmentLine,
  type ProcessEntry,
  readBootID,
  readProcess,
  readProcessTable,
} from "./process-table.ts"

/** Time between SIGTERM and SIGKILL, in milliseconds. */
export const killGraceMs = 3_000

/** How long after SIGKILL it is waited for: what sleeps in the kernel for good cannot be ended by anyone. */
const afterKillMs = 1_000
const pollMs = 10

/** Every process that we start has it in its environment with a value of its own; its descendants inherit it. */
export const markName = "TACKLE_PROCESS"

/** What belongs together: a process group, and what left it but carries the mark or descends from it. */
export interface ProcessTree {
  /** Number of the group and of its first process. Undefined: only what carries the mark, and its descendants. */
  group: number | undefined
  /** A line of the environment that only these processes were given. Finds those that became daemons. */
  mark: string
}

/** Enough to find a tree again after a crash, and never to take a stranger's for it. Linux only. */
export interface TreeIdentity extends ProcessTree {
  group: number
  /** When the first process started, in clock ticks after boot. */
  startTime: number
  bootID: string
}

/** A tree that is about to start: its mark is all that is known of it. Linux only. */
export interface TreeIntent {
  group?: undefined
  mark: string
  bootID: string
}

/** The intent to start a tree with this mark; undefined without `/proc`. */
export function intendTree(mark: string): TreeIntent | undefined {
  const bootID = readBootID()
  return bootID === undefined ? undefined : { mark, bootID }
}

/** The identity of a running tree; undefined without `/proc`, or when its first process is gone. */
export function identifyTree(tree: { group: number; mark: string }): TreeIdentity | undefined {
  const startTime = readProcess(tree.group)?.startTime
  const bootID = readBootID()
  if (startTime === undefined || bootID === undefined) return undefined
  return { group: tree.group, mark: tree.mark, startTime, bootID }
}

/**
 * Ends what an earlier process of ours left running, or may have started just before it ended. Does nothing after a
 * reboot, nor where the group's number went to a stranger: one that neither started when ours did nor carries the mark.
 * True if there was something to end.
 */
export async function killOrphans(tree: TreeIdentity | TreeIntent, graceMs = killGraceMs): Promise<boolean> {
  const { mark, group, bootID } = tree
  if (bootID !== readBootID()) return false
  const first = group === undefined ? undefined : readProcess(group)
  const ours = group !== undefined && first?.startTime === tree.startTime
  const marked = readProcessTable().some((entry) => entry.alive && hasEnvironmentLine(entry.pid, mark))
  if (!marked && !ours) return false
  const stranger = first !== undefined && !ours
  await killTree({ mark, group: stranger ? undefined : group }, graceMs)
  return true
}

/** True while the group has a process that runs. One that ended and was not yet collected does not count. */
export function isGroupAlive(group: number): boolean {
  if (!canSignal(-group)) return false
  const table = readProcessTable()
  return table.length === 0 || table.some((entry) => entry.group === group && entry.alive)
}

/**
 * SIGTERM to the group and to what escaped from it, SIGKILL after `graceMs` to what is left. Resolves when nothing is
 * left, at the latest a second after SIGKILL. Where there is no `/proc`, only the group is found.
 */
export async function killTree(tree: ProcessTree, graceMs = killGraceMs): Promise<void> {
  const known = new Map<number, ProcessEntry>()
  if (!find(tree, known)) return
  send(tree, known, "SIGTERM")
  // A stopped process takes the SIGTERM only when it goes on.
  send(tree, known, "SIGCONT")
  await untilGone(tree, known, graceMs)

  const deadline = Date.now() + afterKillMs
  // What is killed may have forked since it was looked at: again until a look finds nothing.
  while (find(tree, known) && Date.now() < deadline) {
    send(tree, known, "SIGKILL")
    await untilGone(tree, known, pollMs * 5)
  }
}

/** Adds what now belongs to the tree to what was known of it. True if anything of it runs. */
function find(tree: ProcessTree, known: Map<number, ProcessEntry>): boolean {
  const table = readProcessTable()
  if (table.length === 0) return tree.group !== undefined && canSignal(-tree.group)
  for (const [pid, entry] of known) if (!isRunning(entry)) known.delete(pid)
  for (const entry of table) {
    const inside = entry.group === tree.group || entry.session === tree.group
    if (entry.alive && (inside || hasEnvironmentLine(entry.pid, tree.mark))) known.set(entry.pid, entry)
  }
  addDescendants(table, known)
  return known.size > 0
}

function addDescendants(table: readonly ProcessEntry[], known: Map<number, ProcessEntry>): void {
  for (let before = -1; before < known.size; ) {
    before = known.size
    for (const entry of table) if (entry.alive && known.has(entry.parent)) known.set(entry.pid, entry)
  }
}

/** To the group in one go, so that no fork slips through, and to each that is not in it. */
function send(tree: ProcessTree, known: ReadonlyMap<number, ProcessEntry>, signal: NodeJS.Signals): void {
  if (tree.group !== undefined) signalIfThere(-tree.group, signal)
  for (const entry of known.values()) {
    if (entry.group !== tree.group && isRunning(entry)) signalIfThere(entry.pid, signal)
  }
}

async function untilGone(
  tree: ProcessTree,
  known: ReadonlyMap<number, ProcessEntry>,
  ms: number,
): Promise<void> {
  const deadline = Date.now() + ms
  const runs = () =>
    known.size > 0 ? [...known.values()].some(isRunning) : tree.group !== undefined && canSignal(-tree.group)
  while (runs() && Date.now() < deadline) await delay(pollMs)
}

/** True if this very process runs, and not a later one with its number. */
function isRunning(entry: ProcessEntry): boolean {
  const now = readProcess(entry.pid)
  return now?.alive === true && now.startTime === entry.startTime
}

function canSignal(target: number): boolean {
  return signalIfThere(target, 0)
}

/** False if there is no such process or group. One of another user is there, though the signal does not reach it. */
function signalIfThere(target: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(target, signal)
    return true
  } catch (error) {
    const code = systemCode(error)
    if (code === "ESRCH") return false
    if (code === "EPERM") return true
    throw error
  }
}
