import { complete, fail, start } from "../schema/tool-moves.ts"
import type { ToolState, ToolStateError } from "../schema/tool-state.ts"
import type { CallHost, CallOutcome } from "./call.ts"
import type { PreparedCall } from "./prepare.ts"

/** What these do is part of the run itself: calls, steps and lists of their own. They work though there is a record. */
const ownWork: ReadonlySet<string> = new Set([
  "batch",
  "final_answer",
  "plan_enter",
  "plan_exit",
  "task",
  "todoread",
  "todowrite",
])

/**
 * Runs a call by `work`. In a run that is played back its end is the recorded one, and most calls do nothing: they ask
 * nobody, read and change nothing.
 */
export function runOrRecall(
  prepared: PreparedCall,
  host: CallHost,
  work: (host: CallHost) => Promise<CallOutcome>,
): Promise<CallOutcome> {
  const { call, tool, state } = prepared
  const { recorded } = host
  if (!recorded) return work(host)
  const recall = () => recorded({ tool: call.tool, input: state.input })
  if (tool.source.kind === "builtin" && ownWork.has(tool.id)) return workAndRecall(host, recall, work)
  return settle(prepared, host, recall())
}

/** The model reads what it read then, such as how long a subagent took. */
async function workAndRecall(
  host: CallHost,
  recall: () => CallOutcome["state"],
  work: (host: CallHost) => Promise<CallOutcome>,
): Promise<CallOutcome> {
  let known: CallOutcome["state"] | undefined
  function asThen<S extends ToolState>(state: S): S {
    if (state.status !== "completed") return state
    known ??= recall()
    return known.status === "completed" ? { ...state, output: known.output } : state
  }
  const outcome = await work({ ...host, onState: (callID, state) => host.onState(callID, asThen(state)) })
  return { ...outcome, state: asThen(outcome.state) }
}

async function settle(
  { call, tool, state, past }: PreparedCall,
  host: CallHost,
  known: CallOutcome["state"],
): Promise<CallOutcome> {
  const { callID } = call
  const running = start(state, state.input, Date.now())
  await host.onState(callID, running)
  const last =
    known.status === "completed" ? complete(running, known, Date.now()) : fail(running, known, Date.now())
  past.result = known.status
  if (last.status === "error") countRefusal(last, { callID, tool: tool.id }, host)
  await host.onState(callID, last)
  return { callID, state: last }
}

/** So that the run ends as it did then. */
function countRefusal(
  { error: reason, metadata }: ToolStateError,
  call: { callID: string; tool: string },
  { turn }: CallHost,
): void {
  const { kind } = metadata ?? {}
  if (kind === "loop") turn.loopRefusals += 1
  if (kind !== "refused" && kind !== "loop") return
  turn.refused.push({ ...call, permission: call.tool, patterns: [], by: "rule", reason })
}
