import { permissionOf } from "../registry/registered-tool.ts"
import { fail } from "../schema/tool-moves.ts"
import type { CallTools } from "../tool/context.ts"
import type { Access } from "../tool/tool.ts"
import { newId } from "../util/id.ts"
import { isRecord } from "../util/json.ts"
import { isInside, realPath, resolvePath } from "../util/paths.ts"
import { currentTime } from "../util/time.ts"
import type { Call, CallOutcome, PastCall, Step } from "./context.ts"
import { detectLoop, rememberedResults } from "./doom-loop.ts"
import { executeCall } from "./execute.ts"
import { type InvalidCall, type PreparedCall, prepareCall } from "./prepare.ts"
import { runOrReplay } from "./replay.ts"

/** Maximum number of calls in one step that run at the same time. */
const maxParallel = 16

/**
 * Runs a step's calls in parallel, at most 16 at a time, and returns their outcomes in the order of the calls. There
 * are three exceptions. Two calls that use the same file, or a directory and a path inside it, run in order if one of
 * them changes files. A call that executes programs waits for earlier calls that change files, and later calls that
 * change files wait for it. A serial tool runs alone. Rejects only if the store cannot write, not if a tool fails.
 */
export async function runCalls(calls: readonly Call[], step: Step): Promise<CallOutcome[]> {
  const { turn } = step
  if (!step.nested) forgetOldCalls(turn.past)

  const prepared: (PreparedCall | InvalidCall)[] = []
  for (const call of calls) prepared.push(await prepareCall(call, step))

  const plans = prepared.map((call) =>
    call.kind === "prepared" && calls.length > 1 ? planOf(call, step) : unordered,
  )
  const outcomes: Promise<CallOutcome>[] = []
  const inSlot = createSlots(maxParallel)
  prepared.forEach((call, index) => {
    const before = outcomes.filter((_, earlier) =>
      mustWait(plans[index] ?? unordered, plans[earlier] ?? unordered),
    )
    // For each call, the loop detector compares only the calls before it.
    const past = [...turn.past]
    turn.past.push(call.past)
    const run = () =>
      call.kind === "prepared"
        ? runOrReplay(call, step, (step) => executeCall(call, past, step, nestedCalls(call, step)))
        : refuse(call, past, step)
    outcomes.push(runAfter(before, () => inSlot(run)))
  })
  return allEnded(outcomes)
}

/** Maximum number of earlier calls that are kept for the loop detector at the start of a step. */
const rememberedCalls = 50

/** Removes calls that the loop detector no longer needs, to save memory. All calls in the list must have ended. */
function forgetOldCalls(past: PastCall[]): void {
  past.splice(0, past.length - rememberedCalls)
  for (const old of past.slice(0, -rememberedResults)) old.result = undefined
}

/**
 * Creates a function that runs the functions passed to it, at most `count` at the same time and in the order in which
 * they were passed.
 */
function createSlots(count: number): <T>(run: () => Promise<T>) => Promise<T> {
  let free = count
  const waiting: (() => void)[] = []
  return async (run) => {
    if (free > 0) free -= 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      return await run()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else free += 1
    }
  }
}

/**
 * Returns the function with which a call makes other calls, or undefined for a call that is itself nested. Nested calls
 * are stored separately and run like the calls in a step.
 */
function nestedCalls({ call, tool }: PreparedCall, step: Step): CallTools | undefined {
  if (step.nested) return undefined
  const offered = new Map(step.offered)
  offered.delete(tool.id)
  return async (wanted) => {
    const calls = wanted.map(({ tool, input }) => ({
      callID: newId("call"),
      tool,
      raw: JSON.stringify(input),
    }))
    await step.nest?.(call.callID, calls)
    const outcomes = await runCalls(calls, { ...step, offered, nested: true })
    return outcomes.map(({ callID, state }, index) => ({ callID, state, tool: calls[index]?.tool ?? "" }))
  }
}

/** Waits for every call to end, even if one rejects, so that no call continues unnoticed. */
async function allEnded(outcomes: readonly Promise<CallOutcome>[]): Promise<CallOutcome[]> {
  await Promise.allSettled(outcomes)
  return Promise.all(outcomes)
}

async function runAfter(
  before: readonly Promise<unknown>[],
  run: () => Promise<CallOutcome>,
): Promise<CallOutcome> {
  await Promise.all(before)
  return run()
}

/**
 * Ends a call that cannot run. If the call repeats earlier calls, counts the call as a refused loop without asking the
 * user.
 */
async function refuse(invalid: InvalidCall, past: readonly PastCall[], step: Step): Promise<CallOutcome> {
  const { call, state, raw, error, reason } = invalid
  const { callID, tool } = call
  if (detectLoop(past, invalid.past)) step.turn.loopRefusals += 1
  if (reason === "refused") {
    const permission = permissionOf(tool)
    step.turn.refused.push({ callID, tool, permission, patterns: ["*"], by: "rule", reason: error })
  }
  const failed = fail(state, { error, metadata: { kind: reason }, raw }, currentTime())
  await step.report(callID, failed)
  return { callID, state: failed }
}

/** The properties of a call that determine when it can start. */
interface CallPlan {
  access: Access
  serial: boolean
  /** Real path of the file or directory that the call uses. */
  path?: string
}

const unordered: CallPlan = { access: "meta", serial: false }

/** Returns true if `later` must not start before `earlier` has ended. */
export function mustWait(later: CallPlan, earlier: CallPlan): boolean {
  if (later.serial || earlier.serial) return true
  const accesses = [later.access, earlier.access]
  if (!accesses.includes("write")) return false
  if (accesses.includes("execute")) return true
  return later.path !== undefined && earlier.path !== undefined && overlap(later.path, earlier.path)
}

function overlap(a: string, b: string): boolean {
  return isInside(a, b) || isInside(b, a)
}

/**
 * Returns the plan of a call. Built-in tools declare their access. Any other tool is assumed to execute programs. A
 * call that reads without naming a path applies to the whole working directory.
 */
function planOf({ tool, args }: PreparedCall, { active }: Step): CallPlan {
  const { definition, source } = tool
  const { directory } = active.run.session
  const access = source.kind === "builtin" ? (definition.access ?? "execute") : "execute"
  const path = pathOf(args) ?? (access === "read" ? directory : undefined)
  return {
    access,
    serial: definition.serial ?? false,
    path: path === undefined ? undefined : identity(resolvePath(path, directory)),
  }
}

/** Returns the path among the arguments of a call, if any. */
function pathOf(args: unknown): string | undefined {
  if (!isRecord(args)) return undefined
  return [args.filePath, args.path].find((path) => typeof path === "string")
}

/**
 * Returns the real path. If the links cannot be followed, returns the path unchanged, and the tool reports the problem.
 */
function identity(path: string): string {
  try {
    return realPath(path)
  } catch {
    return path
  }
}
