import type { Action } from "../schema/permission.ts"
import type { PluginHost } from "./host.ts"

/** What is asked leave for. */
export interface HookedRequest {
  permission: string
  patterns: readonly string[]
  sessionID: string
  metadata?: Readonly<Record<string, unknown>>
  tool?: { messageID: string; callID: string }
}

/**
 * What the plugins say to a request that the rules allow or ask about. Where one of them failed, what the rules allow is
 * asked: it may have been the one to forbid it. Throws the signal's reason when it fires.
 */
export async function decideByPlugins(
  plugins: PluginHost,
  request: HookedRequest,
  action: "allow" | "ask",
  signal: AbortSignal,
): Promise<Action> {
  if (!plugins.has("permission.ask")) return action
  const { permission, patterns, sessionID, metadata = {}, tool } = request
  const input = {
    id: tool?.callID ?? sessionID,
    type: permission,
    pattern: [...patterns],
    sessionID,
    messageID: tool?.messageID ?? "",
    ...(tool ? { callID: tool.callID } : {}),
    title: `${permission} ${patterns.join(", ")}`,
    metadata: { ...metadata },
    time: { created: Date.now() },
  }
  const { output, failed } = await plugins.run(
    "permission.ask",
    { input, output: { status: action } },
    signal,
  )
  return failed && output.status === "allow" ? "ask" : output.status
}
