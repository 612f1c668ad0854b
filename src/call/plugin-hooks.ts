import type { PluginHost } from "../plugin/host.ts"
import { within } from "../util/abort.ts"
import { TackleError } from "../util/errors.ts"
import { canonicalJson, plainRecord } from "../util/json.ts"

/** A call, as it is passed to plugins. */
export interface HookedCall {
  tool: string
  sessionID: string
  callID: string
}

/** The plugins' decision about a call: its arguments are unchanged or changed, or the call is blocked. */
export type BeforeOutcome =
  | { kind: "same" }
  | { kind: "changed"; args: Record<string, unknown> }
  | { kind: "blocked"; error: string }

/** Passes the arguments of a call to the plugins before it runs. Throws the signal's reason if the signal aborts. */
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
    // Compares the error code instead of the class, because importing the class would load the plugin host.
    if (TackleError.isInstance(error) && error.code === "plugin.blocked")
      return { kind: "blocked", error: error.message }
    throw error
  }
}

/** The fields of a finished call that plugins can change. */
export interface CallEnd {
  title: string
  output: string
  metadata: Record<string, unknown>
}

/** Maximum wait for plugins after an abort, in milliseconds. */
const abortedWaitMs = 1_000

/**
 * Passes the end of a call to the plugins and returns it with their changes. After an abort, returns it unchanged if
 * the plugins do not respond within {@link abortedWaitMs}.
 */
export async function hooksAfter(
  plugins: PluginHost | undefined,
  input: HookedCall & { args: Record<string, unknown>; status: "completed" | "error" },
  end: CallEnd,
  signal: AbortSignal,
): Promise<CallEnd> {
  if (!plugins?.has("tool.execute.after")) return end
  const hooked = plugins.run("tool.execute.after", { input, output: end })
  const done = signal.aborted ? await within(hooked, abortedWaitMs) : await hooked
  return done ? { ...done.output, metadata: plainRecord(done.output.metadata) } : end
}
