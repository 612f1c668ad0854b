import { detectLoop, rememberedResults } from "../permission/doom-loop.ts"
import { permissionOf } from "../registry/tool-permission.ts"
import { fail } from "../schema/tool-moves.ts"
import type { CallTools } from "../tool/context.ts"
import type { Access } from "../tool/tool.ts"
import { newId } from "../util/id.ts"
import { isRecord } from "../util/json.ts"
import { isInside, realPath, resolvePath } from "../util/paths.ts"
import type { Call, CallHost, CallOutcome, PastCall } from "./call.ts"
import { executeCall } from "./execute.ts"
import { type InvalidCall, type PreparedCall, prepareCall } from "./prepare.ts"
import { runOrRecall } from "./recorded.ts"

/**
 * Runs the calls of one step and returns their outcomes in the order of the calls. Calls run side by side, with three
 * exceptions: two on one file keep their order when either changes it; a call that executes programs waits for the
 * changes before it and holds those after it; a serial tool runs alone. Rejects only where the store refuses to write,
 * never for what a tool does.
 */
export async function runCalls(calls: readonly Call[], host: CallHost): Promise<CallOutcome[]> {
  // All calls of the steps before have ended. Their texts may be long, and are kept nowhere else once they are pruned.
  if (!host.nested) for (const old of host.turn.past.slice(0, -rememberedResults)) old.result = undefined

  const prepared: (PreparedCall | InvalidCall)[] = []
  for (const call of calls) prepared.push(await prepareCall(call, host))

  // One that is alone waits for nobody.
  const plans = prepared.map((call) =>
    call.kind === "prepared" && calls.length > 1 ? planOf(call, host) : harmless,
  )
  const outcomes: Promise<CallOutcome>[] = []
  prepared.forEach((call, index) => {
    const before = outcomes.filter((_, earlier) =>
      mustWait(plans[index] ?? harmless, plans[earlier] ?? harmless),
    )
    // The turn's history as it was when this call was made: with the calls before it, without those after.
    const past = [...host.turn.past]
    host.turn.past.push(call.past)
    const run = () =>
      call.kind === "prepared"
        ? runOrRecall(call, host, (host) => executeCall(call, past, host, nestedCalls(call, host)))
        : refuse(call, past, host)
    outcomes.push(runAfter(before, run))
  })
  return allEnded(outcomes)
}

/** What a tool calls others with: kept as calls of their own, and run like those of a step. */
function nestedCalls({ call, tool }: PreparedCall, host: CallHost): CallTools | undefined {
  if (host.nested) return undefined
  const offered = new Map(host.offered)
  offered.delete(tool.id)
  return async (wanted) => {
    const calls = wanted.map(({ tool, input }) => ({
      callID: newId("call"),
      tool,
      raw: JSON.stringify(input),
    }))
    await host.onNested?.(call.callID, calls)
    const outcomes = await runCalls(calls, { ...host, offered, nested: true })
    return outcomes.map(({ callID, state }, index) => ({ callID, state, tool: calls[index]?.tool ?? "" }))
  }
}

/** Where the store refused one, the others have ended too before anybody hears of it: none goes on unseen. */
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

/** A call that cannot run. Made again and again it counts as a loop that was refused: there is nothing to ask about. */
async function refuse(invalid: InvalidCall, past: readonly PastCall[], host: CallHost): Promise<CallOutcome> {
  const { call, state, error, reason } = invalid
  if (detectLoop(past, invalid.past)) host.turn.loopRefusals += 1
  if (reason === "refused") {
    const { callID, tool } = call
    host.turn.refused.push({
      callID,
      tool,
      permission: permissionOf(tool),
      patterns: ["*"],
      by: "rule",
      reason: error,
    })
  }
  const failed = fail(state, { error, metadata: { kind: reason } }, Date.now())
  await host.onState(call.callID, failed)
  return { callID: call.callID, state: failed }
}

/** What the order of calls depends on. */
interface CallPlan {
  access: Access
  serial: boolean
  /** The file or directory that the call is about, links followed. */
  path?: string
}

const harmless: CallPlan = { access: "meta", serial: false }

/** True if `later` must not start before `earlier` has ended. */
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

/** Only our own tools are believed about their access; anything else counts as running programs. */
function planOf({ tool, args }: PreparedCall, host: CallHost): CallPlan {
  const { definition, source } = tool
  const plan: CallPlan = {
    access: source.kind === "builtin" ? (definition.access ?? "execute") : "execute",
    serial: definition.serial ?? false,
  }
  const path = pathOf(args) ?? (plan.access === "read" ? host.directory : undefined)
  if (path !== undefined) plan.path = identity(resolvePath(path, host.directory))
  return plan
}

/** The names under which our tools take a path. A search without one is about the whole directory. */
function pathOf(args: unknown): string | undefined {
  if (!isRecord(args)) return undefined
  return [args.filePath, args.path].find((path) => typeof path === "string")
}

/** Where links cannot be followed the written path has to do: the tool itself reports what is wrong with it. */
function identity(path: string): string {
  try {
    return realPath(path)
  } catch {
    return path
  }
}
