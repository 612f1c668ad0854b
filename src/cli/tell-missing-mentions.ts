import { shownName } from "../config/shown-name.ts"
import type { Tackle } from "../engine/tackle.ts"
import { type MissingMention, missingMentions } from "../session/missing-mentions.ts"
import { warn } from "./notice.ts"

/** More are not told of one prompt: a text that was pasted may be full of them. */
const maxTold = 5

/** Tells the person which paths with `@` of their prompt are not there, so that nothing was attached for them. */
export async function tellMissingMentions(
  prompt: string,
  { directory, worktree, agents }: Tackle,
  signal: AbortSignal,
): Promise<void> {
  if (!prompt.includes("@")) return
  const place = { directory, worktree, agents: [...agents.keys()], servers: [] }
  const missing = await missingMentions(prompt, place, signal)
  for (const mention of missing.slice(0, maxTold)) warn(describe(mention))
}

function describe({ name, outside, near }: MissingMention): string {
  const word = `@${shownName(name)}`
  if (outside)
    return `${word} lies outside of this project, so it is not attached. To attach it: --file ${shownName(name)}`
  const hint =
    near.length > 0 ? ` Did you mean ${near.map((path) => `@${shownName(path)}`).join(" or ")}?` : ""
  return `${word} names no file here, so nothing is attached for it.${hint}`
}
