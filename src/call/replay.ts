import { complete, fail, start } from "../schema/tool-moves.ts"
import type { ToolState, ToolStateError } from "../schema/tool-state.ts"
import { currentTime } from "../util/time.ts"
import type { CallOutcome, Step, Turn } from "./context.ts"
import { type PreparedCall, polls } from "./prepare.ts"

/** Ids of tools that also run during a replay, because they affect only the run itself. */
const runsDuringReplay: ReadonlySet<string> = new Set([
  "batch",
  "final_answer",
  "plan_enter",
  "plan_exit",
  "task",
  "todoread",
  "todowrite",
])

/**
 * Runs a call with `work`. During a replay, most calls do not run: they request no permission, change nothing, and end
 * with their recorded results.
 */
export function runOrReplay(
  prepared: PreparedCall,
  step: Step,
  work: (step: Step) => Promise<CallOutcome>,
): Promise<CallOutcome> {
  const { call, tool, state } = prepared
  const { recorded } = step
  if (!recorded) return work(step)
  const recall = () => recorded({ tool: call.tool, input: state.input })
  if (tool.source.kind === "builtin" && runsDuringReplay.has(tool.id))
    return workAndRecall(step, recall, work)
  return replay(prepared, step, recall())
}

/**
 * Runs a call during a replay, but passes the recorded output to the model, because the new output may differ in
 * details such as the duration of a subagent.
 */
async function workAndRecall(
  step: Step,
  recall: () => CallOutcome["state"],
  work: (step: Step) => Promise<CallOutcome>,
): Promise<CallOutcome> {
  let known: CallOutcome["state"] | undefined
  function asRecorded<S extends ToolState>(state: S): S {
    if (state.status !== "completed") return state
    known ??= recall()
    return known.status === "completed" ? { ...state, output: known.output } : state
  }
  const outcome = await work({ ...step, report: (callID, state) => step.report(callID, asRecorded(state)) })
  return { ...outcome, state: asRecorded(outcome.state) }
}

async function replay(prepared: PreparedCall, step: Step, known: CallOutcome["state"]): Promise<CallOutcome> {
  const { call, tool, state, past } = prepared
  const { callID } = call
  const running = start(state, state.input, currentTime())
  await step.report(callID, running)
  const last =
    known.status === "completed"
      ? complete(running, known, currentTime())
      : fail(running, known, currentTime())
  if (polls(prepared) && known.status === "completed") past.result = known.output
  if (last.status === "error") countRefusal(last, { callID, tool: tool.id }, step.turn)
  await step.report(callID, last)
  return { callID, state: last }
}

/** Counts recorded refusals, so that the replay ends as the recorded run did. */
function countRefusal(
  { error: reason, metadata }: ToolStateError,
  call: { callID: string; tool: string },
  turn: Turn,
): void {
  const { kind } = metadata ?? {}
  if (kind === "loop") turn.loopRefusals += 1
  if (kind !== "refused" && kind !== "loop") return
  turn.refused.push({ ...call, permission: call.tool, patterns: [], by: "rule", reason })
}
