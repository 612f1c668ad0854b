import childProcess, { ChildProcess } from "node:child_process"
import { syncBuiltinESMExports } from "node:module"
import { newId } from "../util/id.ts"
import { isRecord } from "../util/json.ts"
import type { RecordTree } from "../util/process.ts"
import { intendTree, killMarked, killTree, markName } from "../util/process-tree.ts"
import { isThirdParty } from "./escaped-errors.ts"

/** An engine that ends the programs of third-party code. */
interface Holder {
  record: RecordTree
  removeRecord?: () => void
}

const holders = new Set<Holder>()
const value = newId("prc")
const mark = `${markName}=${value}`
let hasStarted = false
let restore = () => {}

/**
 * Marks the programs that third-party code starts in this process, for example with `execSync` in a custom tool, and
 * records the mark before the first start. The returned function ends these programs if no other engine is open. They
 * also end when the process exits. If the process is killed, the record lets the next start end them.
 */
export function holdPrograms(record: RecordTree): () => Promise<void> {
  const holder: Holder = { record }
  holders.add(holder)
  if (holders.size === 1) {
    restore = markStarts()
    process.on("exit", killNow)
  }
  return async () => {
    if (!holders.delete(holder) || holders.size > 0) return
    restore()
    process.off("exit", killNow)
    if (!hasStarted) return
    await killTree({ group: undefined, mark })
    holder.removeRecord?.()
  }
}

function killNow(): void {
  if (hasStarted) killMarked(mark)
}

/** Returns true if a program must be marked, and records the mark. A program that Tackle starts has its own mark. */
function takesMark(given: string | undefined): boolean {
  if (!isThirdParty() || (given !== undefined && given !== process.env[markName])) return false
  hasStarted = true
  const intent = intendTree(mark)
  for (const holder of holders) if (intent) holder.removeRecord ??= holder.record(intent)
  return true
}

/** The method with which `spawn`, `exec`, `execFile` and `fork` start a program. Node does not declare it. */
interface Starter {
  spawn(options: { envPairs?: string[] }): unknown
}

/** Adds the mark to the environment of the programs that third-party code starts. Returns a function that undoes this. */
function markStarts(): () => void {
  const starter = ChildProcess.prototype as unknown as Starter
  const { spawn } = starter
  starter.spawn = function (options) {
    const prefix = `${markName}=`
    const { envPairs = [] } = options
    if (!takesMark(envPairs.find((pair) => pair.startsWith(prefix))?.slice(prefix.length)))
      return spawn.call(this, options)
    return spawn.call(this, {
      ...options,
      envPairs: [...envPairs.filter((pair) => !pair.startsWith(prefix)), mark],
    })
  }
  const { execSync, execFileSync, spawnSync } = childProcess
  const original = { execSync, execFileSync, spawnSync }
  Object.assign(childProcess, {
    execSync: (...args: unknown[]) => Reflect.apply(execSync, undefined, withMark(args)),
    execFileSync: (...args: unknown[]) => Reflect.apply(execFileSync, undefined, withMark(args)),
    spawnSync: (...args: unknown[]) => Reflect.apply(spawnSync, undefined, withMark(args)),
  })
  syncBuiltinESMExports()
  return () => {
    starter.spawn = spawn
    Object.assign(childProcess, original)
    syncBuiltinESMExports()
  }
}

/** Returns the arguments of a synchronous start, with the mark in the environment of its options. */
function withMark(args: readonly unknown[]): readonly unknown[] {
  const given = args.slice(0, args.findLastIndex((each) => each !== undefined) + 1)
  const last = given.at(-1)
  const options = isRecord(last) ? last : {}
  const env = isRecord(options.env) ? options.env : process.env
  const known = env[markName]
  if (!takesMark(typeof known === "string" ? known : undefined)) return args
  return [
    ...(isRecord(last) ? given.slice(0, -1) : given),
    { ...options, env: { ...env, [markName]: value } },
  ]
}
