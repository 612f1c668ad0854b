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
const killGraceMs = 3_000

/** Time in ms to wait after SIGKILL. A process that is stuck in the kernel cannot be ended. */
const afterKillMs = 1_000
const pollMs = 10

/**
 * Environment variable with a unique value for each started program. The program's descendants inherit the variable.
 */
export const markName = "TACKLE_PROCESS"

/** A process group, and the processes that left the group but carry the mark or descend from its processes. */
export interface ProcessTree {
  /**
   * Group id, which is also the pid of the first process. If undefined, the tree consists of the processes with the
   * mark and their descendants.
   */
  group: number | undefined
  /** Environment entry (`NAME=value`) that only the processes in this tree have. Used to find daemons. */
  mark: string
}

/** Identifies a tree after a crash, so that another tree is not mistaken for it. Linux only. */
export interface TreeIdentity extends ProcessTree {
  group: number
  /** Start time of the first process, in clock ticks after boot. */
  startTime: number
  bootID: string
}

/** A tree that is about to start. Only its mark is known. Linux only. */
export interface TreeIntent {
  group?: undefined
  mark: string
  bootID: string
}

/** Returns the intent to start a tree with this mark, or undefined on systems without `/proc`. */
export function intendTree(mark: string): TreeIntent | undefined {
  const bootID = readBootID()
  return bootID === undefined ? undefined : { mark, bootID }
}

/** Returns the identity of a running tree, or undefined if the first process is gone or the system has no `/proc`. */
export function identifyTree(tree: { group: number; mark: string }): TreeIdentity | undefined {
  const startTime = readProcess(tree.group)?.startTime
  const bootID = readBootID()
  if (startTime === undefined || bootID === undefined) return undefined
  return { group: tree.group, mark: tree.mark, startTime, bootID }
}

/**
 * Ends a tree that an earlier Tackle process left running, or may have started just before that process ended. Does
 * nothing after a reboot. Does not signal a group whose id now belongs to an unrelated process. Returns true if a
 * process in the tree was running.
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

/** Returns true while a process in the group runs. Zombies do not count, except on systems without `/proc`. */
export function isGroupAlive(group: number): boolean {
  if (!canSignal(-group)) return false
  const table = readProcessTable()
  return table.length === 0 || table.some((entry) => entry.group === group && entry.alive)
}

/**
 * Sends SIGTERM to the group and to processes that left it. After `graceMs`, sends SIGKILL to processes that are still
 * running. Resolves when all processes have ended, or about one second after SIGKILL at the latest. On systems without
 * `/proc`, finds only the group.
 */
export async function killTree(tree: ProcessTree, graceMs = killGraceMs): Promise<void> {
  const known = new Map<number, ProcessEntry>()
  if (!find(tree, known)) return
  send(tree, known, "SIGTERM")
  // A stopped process handles SIGTERM only after SIGCONT.
  send(tree, known, "SIGCONT")
  await untilGone(tree, known, graceMs)

  const deadline = performance.now() + afterKillMs
  // A process may have forked since the last scan, so repeat until a scan finds nothing.
  while (find(tree, known) && performance.now() < deadline) {
    send(tree, known, "SIGKILL")
    await untilGone(tree, known, pollMs * 5)
  }
}

/**
 * Sends SIGKILL to the descendants of this process that run in its process group, such as the program for which
 * `execSync` waits, and to their descendants. Programs that Tackle starts have their own group.
 */
export function killGroupMembers(): void {
  const table = readProcessTable()
  const group = readProcess(process.pid)?.group
  const members = table.filter((entry) => entry.parent === process.pid && entry.group === group)
  const known = new Map(members.map((entry) => [entry.pid, entry]))
  addDescendants(table, known)
  for (const pid of known.keys()) signalIfThere(pid, "SIGKILL")
}

/** Sends SIGKILL to each process with the mark, without waiting. Finds no processes on systems without `/proc`. */
export function killMarked(mark: string): void {
  for (const { pid, alive } of readProcessTable())
    if (alive && hasEnvironmentLine(pid, mark)) signalIfThere(pid, "SIGKILL")
}

/** Updates `known` to the running processes in the tree. Returns true if there are any. */
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

/**
 * Sends the signal to the whole group in one call, so that no fork escapes, and then to each known process outside the
 * group.
 */
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
  const deadline = performance.now() + ms
  const runs = () =>
    known.size > 0 ? [...known.values()].some(isRunning) : tree.group !== undefined && canSignal(-tree.group)
  while (runs() && performance.now() < deadline) await delay(pollMs)
}

/** Returns true if the process is still running. Compares start times to exclude a later process with the same pid. */
function isRunning(entry: ProcessEntry): boolean {
  const now = readProcess(entry.pid)
  return now?.alive === true && now.startTime === entry.startTime
}

function canSignal(target: number): boolean {
  return signalIfThere(target, 0)
}

/**
 * Returns false if the process or group does not exist, and true for another user's process, although the signal does
 * not reach it.
 */
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
