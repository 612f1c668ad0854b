import type { SessionState } from "../view/session-state.ts"
import { usageOf } from "../view/session-state.ts"
import { visible } from "../view/visible.ts"
import { clip } from "./card.ts"
import type { Theme } from "./theme.ts"

/** Values of the status line. */
export interface StatusFacts {
  agent: string
  model: string
  /** Further facts, such as the state of the sandbox and the git branch. */
  more: readonly string[]
  /** Hint about keys that are useful at the moment. */
  hint: string
}

/** Formats the status line: the agent, the model, the usage, and additional facts. Omits facts that do not fit. */
export function renderStatus(
  state: SessionState | undefined,
  { agent, model, more, hint }: StatusFacts,
  { width, theme }: { width: number; theme: Theme },
): string {
  const { contextTokens, cost } = usageOf(state ?? { messages: [] })
  const facts = [
    agent,
    model,
    ...(contextTokens > 0 ? [contextText(contextTokens, state?.context?.room)] : []),
    ...(cost > 0 ? [`$${cost.toFixed(cost < 0.1 ? 3 : 2)}`] : []),
    ...more,
  ].map(visible)
  let left = ""
  for (const fact of facts) {
    const next = left === "" ? fact : `${left} · ${fact}`
    if (next.length > width) break
    left = next
  }
  const room = width - left.length
  const right = hint.length + 2 <= room ? hint.padStart(room) : ""
  return clip(theme.dim(`${left}${right}`), width)
}

/** Formats a number of tokens, such as `12.3k`, with its share of the context if the size is known. */
function contextText(tokens: number, room: number | undefined): string {
  const count = tokens < 1_000 ? String(tokens) : `${(tokens / 1_000).toFixed(tokens < 100_000 ? 1 : 0)}k`
  return room === undefined ? `${count} tokens` : `${count} tokens (${Math.round((tokens / room) * 100)}%)`
}
