import type { PluginHost } from "../plugin/host.ts"
import type { OfferedTool } from "../registry/offered-tool.ts"
import { pending } from "../schema/tool-moves.ts"
import type { ToolStatePending } from "../schema/tool-state.ts"
import { correctArguments, InvalidArgumentsError, validateArguments } from "../tool/validate.ts"
import { invalidCallMessage } from "../tools/invalid.ts"
import { abortedError, orAbort } from "../util/abort.ts"
import { TackleError } from "../util/errors.ts"
import { canonicalJson, isRecord, plainRecord } from "../util/json.ts"
import { watchThirdPartyCode } from "../util/main-thread.ts"
import { repairArguments, repairName } from "../util/repair-json.ts"
import type { Call, PastCall, Step } from "./context.ts"

/** A call that can run: its tool is found and its arguments are valid. */
export interface PreparedCall {
  kind: "prepared"
  call: Call
  tool: OfferedTool
  state: ToolStatePending
  /** The arguments for the tool, with defaults and coercions applied. */
  args: unknown
  /**
   * The entry for this call in the loop detector's history. For a polling call, the result is added as soon as it is
   * known.
   */
  past: PastCall
  /** Description of the repairs to the call, if any. */
  repaired?: string
}

/** A call that cannot run. The model receives `error`. */
export interface InvalidCall {
  kind: "invalid"
  call: Call
  state: ToolStatePending
  past: PastCall
  /** The arguments as the model wrote them, if they are not a JSON object. */
  raw?: string
  error: string
  reason: "unknown-tool" | "malformed" | "invalid-arguments" | "closed" | "aborted" | "refused" | "blocked"
}

/**
 * Finds the tool, parses and corrects the arguments, passes them to the plugins and validates them. Does not run the tool. Returns
 * an invalid call, and does not throw, if the tool is unknown or unavailable, the arguments are invalid, a plugin
 * blocks the call, or the signal aborts.
 */
export async function prepareCall(call: Call, step: Step): Promise<PreparedCall | InvalidCall> {
  const { active, offered, closed } = step
  const { engine, session, signal } = active.run
  const parsed = parseInput(call)
  // The loop detector compares the model's arguments, not those changed by plugins.
  const past: PastCall = { tool: call.tool, input: parsed.ok ? canonicalJson(parsed.input) : call.raw }
  const state = pending(call.raw, parsed.ok ? parsed.input : {})
  const invalid = (reason: InvalidCall["reason"], error: string): InvalidCall => ({
    kind: "invalid",
    call,
    state,
    past,
    raw: parsed.ok ? undefined : call.raw,
    error,
    reason,
  })

  if (closed !== undefined) return invalid("closed", invalidCallMessage({ tool: call.tool, error: closed }))
  const why = offered.has(call.tool)
    ? undefined
    : engine.registry.unavailableReason(call.tool, active.toolScope)
  if (why !== undefined)
    return invalid("refused", `The ${call.tool} tool is unavailable: ${why}. Continue without it.`)
  const found = findTool(call.tool, step)
  if (!found) {
    return invalid(
      "unknown-tool",
      invalidCallMessage({
        tool: call.tool,
        error: call.tool === "invalid" ? "the call does not specify a tool" : "this tool does not exist",
        available: [...offered.keys()],
      }),
    )
  }
  past.tool = found.tool.id
  if (!parsed.ok) return invalid("malformed", invalidCallMessage({ tool: call.tool, error: parsed.error }))

  // A tool can also block the main thread while it validates its arguments.
  if (!["builtin", "mcp"].includes(found.tool.source.kind)) await watchThirdPartyCode()
  try {
    const corrected = await orAbort(correctArguments(found.tool, parsed.input), signal)
    const hooked = { tool: found.tool.id, sessionID: session.id, callID: call.callID }
    // Plugins run before validation, so that they can correct arguments.
    const before = await hooksBefore(engine.plugins, hooked, corrected.input, signal)
    if ("blocked" in before) return invalid("blocked", before.blocked)
    const input = before.args
    const isValid = input === corrected.input && corrected.valid
    const notes = [call.repaired, found.repaired, parsed.repaired, ...corrected.changes]
    const repairs = notes.filter((note) => note !== undefined)
    return {
      kind: "prepared",
      call,
      tool: found.tool,
      // Permission must be requested for the arguments that the tool receives.
      state: { ...state, input },
      args: isValid ? isValid.data : await orAbort(validateArguments(found.tool, input), signal),
      past,
      repaired: repairs.length > 0 ? repairs.join("; ") : undefined,
    }
  } catch (error) {
    if (error instanceof InvalidArgumentsError) return invalid("invalid-arguments", error.message)
    if (signal.aborted) return invalid("aborted", abortedError(signal).message)
    throw error
  }
}

function findTool(
  name: string,
  { offered, active }: Step,
): { tool: OfferedTool; repaired?: string } | undefined {
  const called = (id: string) => offered.get(id) ?? active.deferred?.get(id)
  const id = active.run.engine.registry.idOf(name) ?? name
  // A tool of the host application is not in the registry.
  const exact = called(name) ?? called(id)
  if (exact) return { tool: exact }
  const near = repairName(name, [...offered.keys()])
  const tool = near === undefined ? undefined : offered.get(near)
  return tool ? { tool, repaired: `the name "${name}" was read as "${tool.id}"` } : undefined
}

type ParsedInput =
  | { ok: true; input: Record<string, unknown>; repaired?: string }
  | { ok: false; error: string }

function parseInput(call: Call): ParsedInput {
  if (call.cut) {
    return {
      ok: false,
      error:
        "the output limit was reached during this call, so the arguments are incomplete. Nothing was " +
        "done. Repeat the call with less content: use shorter text or several smaller calls",
    }
  }
  const parsed = repairArguments(call.raw)
  if (!parsed.ok) return { ok: false, error: parsed.error }
  if (!isRecord(parsed.value)) return { ok: false, error: "its arguments must be one JSON object" }
  return { ok: true, input: parsed.value, repaired: parsed.repaired }
}

/** A call, as it is passed to plugins. */
export interface HookedCall {
  tool: string
  sessionID: string
  callID: string
}

/**
 * Passes the arguments of a call to the plugins before it runs. Returns the arguments as the plugins changed them, or
 * the reason why a plugin blocks the call. Throws the signal's reason if the signal aborts.
 */
async function hooksBefore(
  plugins: PluginHost | undefined,
  input: HookedCall,
  args: Record<string, unknown>,
  signal: AbortSignal,
): Promise<{ args: Record<string, unknown> } | { blocked: string }> {
  if (!plugins?.has("tool.execute.before")) return { args }
  try {
    const { output } = await plugins.run("tool.execute.before", { input, output: { args } }, signal)
    const changed = plainRecord(output.args)
    return { args: canonicalJson(changed) === canonicalJson(args) ? args : changed }
  } catch (error) {
    // Compares the error code instead of the class, because importing the class would load the plugin host.
    if (TackleError.isInstance(error) && error.code === "plugin.blocked") return { blocked: error.message }
    throw error
  }
}

/**
 * Returns true for a call of a built-in tool that polls: equal calls may have different results. The loop detector
 * compares the results of these calls.
 */
export function polls({ tool: { definition, source }, args }: PreparedCall): boolean {
  return source.kind === "builtin" && definition.polls?.(args) === true
}
