import type { OfferedTool } from "../registry/offered-tool.ts"
import { pending } from "../schema/tool-moves.ts"
import type { ToolStatePending } from "../schema/tool-state.ts"
import { InvalidArgumentsError, validateArguments } from "../tool/validate.ts"
import { invalidCallMessage } from "../tools/invalid.ts"
import { abortedError, orAbort } from "../util/abort.ts"
import { canonicalJson, isRecord } from "../util/json.ts"
import { repairArguments, repairName } from "../util/repair-json.ts"
import type { Call, CallHost, PastCall } from "./call.ts"
import { hooksBefore } from "./plugin-hooks.ts"

/** A call that can run: its tool found, its arguments parsed. */
export interface PreparedCall {
  kind: "prepared"
  call: Call
  tool: OfferedTool
  state: ToolStatePending
  /** What the tool gets: defaults and coercions applied. */
  args: unknown
  /** This call's line in the turn's history; its result is filled in when it is there. */
  past: PastCall
  /** What was mended, in words, where the call was not right as it came. */
  repaired?: string
}

/** A call that cannot run. `error` is what the model reads. */
export interface InvalidCall {
  kind: "invalid"
  call: Call
  state: ToolStatePending
  past: PastCall
  error: string
  reason: "unknown-tool" | "malformed" | "invalid-arguments" | "closed" | "aborted" | "refused" | "blocked"
}

/**
 * Finds the tool, reads the arguments and lets plugins look at them. Touches nothing by itself; a bad call is an outcome,
 * not an exception, and so is one that a plugin blocks and one that the signal overtook.
 */
export async function prepareCall(
  call: Call,
  {
    offered,
    deferred,
    closed,
    withheld,
    signal,
    plugins,
    sessionID,
  }: Pick<CallHost, "offered" | "deferred" | "closed" | "withheld" | "signal" | "plugins" | "sessionID">,
): Promise<PreparedCall | InvalidCall> {
  const parsed = parseInput(call)
  const state = pending(call.raw, parsed.ok ? parsed.input : {})
  const invalid = (reason: InvalidCall["reason"], error: string): InvalidCall => ({
    kind: "invalid",
    call,
    state,
    past: { tool: call.tool, input: call.raw, result: reason },
    error,
    reason,
  })

  if (closed !== undefined) return invalid("closed", invalidCallMessage({ tool: call.tool, error: closed }))
  const why = offered.has(call.tool) ? undefined : withheld?.(call.tool)
  if (why !== undefined)
    return invalid("refused", `Not allowed: the ${call.tool} tool is withheld: ${why}. Go on without it.`)
  const found = findTool(call.tool, offered, deferred)
  if (!found) {
    return invalid(
      "unknown-tool",
      invalidCallMessage({ tool: call.tool, error: "there is no such tool", available: [...offered.keys()] }),
    )
  }
  if (!parsed.ok) return invalid("malformed", invalidCallMessage({ tool: call.tool, error: parsed.error }))

  try {
    const validate = (input: unknown) => orAbort(validateArguments(found.tool, input), signal)
    const given = await validate(parsed.input)
    const hooked = { tool: found.tool.id, sessionID, callID: call.callID }
    const before = await hooksBefore(plugins, hooked, parsed.input, signal)
    if (before.kind === "blocked") return invalid("blocked", before.error)
    const changed = before.kind === "changed"
    const args = changed ? await validate(before.args) : given
    const repaired = [call.repaired, found.repaired, parsed.repaired]
      .filter((note) => note !== undefined)
      .join("; ")
    // As the model wrote it: what plugins make of it must not hide that the model repeats itself.
    const past: PastCall = { tool: found.tool.id, input: canonicalJson(parsed.input) }
    return {
      kind: "prepared",
      call,
      tool: found.tool,
      // What runs is what is asked for and shown.
      state: changed ? { ...state, input: before.args } : state,
      args,
      past,
      ...(repaired ? { repaired } : {}),
    }
  } catch (error) {
    if (error instanceof InvalidArgumentsError) return invalid("invalid-arguments", error.message)
    if (signal.aborted) return invalid("aborted", abortedError(signal).message)
    throw error
  }
}

function findTool(
  name: string,
  offered: ReadonlyMap<string, OfferedTool>,
  deferred: ReadonlyMap<string, OfferedTool> | undefined,
) {
  const exact = offered.get(name) ?? deferred?.get(name)
  if (exact) return { tool: exact }
  const near = byOwnName(name, offered) ?? repairName(name, [...offered.keys()])
  const tool = near === undefined ? undefined : offered.get(near)
  return tool ? { tool, repaired: `the name "${name}" was read as "${tool.id}"` } : undefined
}

/** The one tool that has this name in its file, where that is called otherwise. */
function byOwnName(name: string, offered: ReadonlyMap<string, OfferedTool>): string | undefined {
  const called = [...offered.values()].filter(({ ownName }) => ownName === name)
  return called.length === 1 ? called[0]?.id : undefined
}

type ParsedInput =
  | { ok: true; input: Record<string, unknown>; repaired?: string }
  | { ok: false; error: string }

function parseInput(call: Call): ParsedInput {
  if (call.cut) {
    return {
      ok: false,
      error:
        "the answer reached its output limit in the middle of this call, so its arguments are incomplete. " +
        "Nothing was done. Make the call again with less in it, such as a shorter text or several smaller calls",
    }
  }
  const parsed = repairArguments(call.raw)
  if (!parsed.ok) return { ok: false, error: parsed.error }
  if (!isRecord(parsed.value)) return { ok: false, error: "its arguments must be one JSON object" }
  return parsed.repaired === undefined
    ? { ok: true, input: parsed.value }
    : { ok: true, input: parsed.value, repaired: parsed.repaired }
}
