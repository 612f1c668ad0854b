import type { PluginHost } from "../plugin/host.ts"
import { within } from "../util/abort.ts"
import { TackleError } from "../util/errors.ts"
import { canonicalJson, plainRecord } from "../util/json.ts"

/** A call as plugins hear of it. */
export interface HookedCall {
  tool: string
  sessionID: string
  callID: string
}

/** What became of the arguments: other ones, where a plugin changed them, or why a plugin blocks the call. */
export type BeforeOutcome =
  | { kind: "same" }
  | { kind: "changed"; args: Record<string, unknown> }
  | { kind: "blocked"; error: string }

/** Asks the plugins about the arguments of a call that would be run. Throws the signal's reason when it fires. */
export async function hooksBefore(
  plugins: PluginHost | undefined,
  input: HookedCall,
  args: Record<string, unknown>,
  signal: AbortSignal,
): Promise<BeforeOutcome> {
  if (!plugins?.has("tool.execute.before")) return { kind: "same" }
  try {
    const { output } = await plugins.run("tool.execute.before", { input, output: { args } }, signal)
    const changed = plainRecord(output.args)
    return canonicalJson(changed) === canonicalJson(args)
      ? { kind: "same" }
      : { kind: "changed", args: changed }
  } catch (error) {
    // By its code: its class would load what nobody needs who has no plugin.
    if (TackleError.isInstance(error) && error.code === "plugin.blocked")
      return { kind: "blocked", error: error.message }
    throw error
  }
}

/** What plugins may change of a call that has ended. */
export interface CallEnd {
  title: string
  output: string
  metadata: Record<string, unknown>
}

/** After an abort nobody waits longer for plugins. In milliseconds. */
const abortedPatienceMs = 1_000

/** Tells the plugins how a call ended. The end as they leave it, or as it was where nothing of theirs came in time. */
export async function hooksAfter(
  plugins: PluginHost | undefined,
  input: HookedCall & { args: Record<string, unknown>; status: "completed" | "error" },
  end: CallEnd,
  signal: AbortSignal,
): Promise<CallEnd> {
  if (!plugins?.has("tool.execute.after")) return end
  const told = plugins.run("tool.execute.after", { input, output: end })
  const done = signal.aborted ? await within(told, abortedPatienceMs) : await told
  return done ? { ...done.output, metadata: plainRecord(done.output.metadata) } : end
}
