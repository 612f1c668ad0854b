import type { Action } from "../schema/permission.ts"
import type { DetailedVerdict } from "./check.ts"
import { PermissionError } from "./errors.ts"
import type { SessionAsk } from "./request.ts"

/** What plugins said: answered in the person's place, asked where the rules would not, or nothing that counts. */
export type PluginWord = "answered" | "tightened" | "none"

/**
 * What plugins say to a request that the rules allow or ask about: they may answer a question in the person's place, or
 * tighten.
 */
export type Decide = (request: SessionAsk, action: "allow" | "ask", signal: AbortSignal) => Promise<Action>

/** Asks them, unless the rules deny. Throws `PermissionError` where they do. */
export async function askPlugins(
  decide: Decide,
  request: SessionAsk,
  { action, details }: DetailedVerdict,
  signal: AbortSignal,
): Promise<PluginWord> {
  if (action === "deny") return "none"
  const word = await decide(request, action, signal)
  if (word === "deny") {
    const { permission, patterns } = request
    throw new PermissionError({ kind: "rejected", permission, patterns, by: "plugin" })
  }
  if (word === "ask") return action === "allow" ? "tightened" : "none"
  // Whether a loop goes on is for a person to say: what repeats itself would be answered again and again.
  const loop = details.some(({ check }) => check.permission === "doom_loop")
  return action === "ask" && !loop ? "answered" : "none"
}
