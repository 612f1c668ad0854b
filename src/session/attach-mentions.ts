import { type CallHost, newTurn } from "../call/call.ts"
import { runCalls } from "../call/schedule.ts"
import type { Refusal } from "../event/events.ts"
import { readResourceID, resourceServers } from "../mcp/client/resources.ts"
import { newId } from "../util/id.ts"
import { type Attached, showCall, shownFiles } from "./attach.ts"
import type { PromptFile } from "./handle.ts"
import { findMentions } from "./mentions.ts"

/** What the mentions of a prompt add to it. */
export interface MentionedFiles {
  files: PromptFile[]
  /** For the model: what could not be attached and why, and which subagents the person named. */
  notes: string[]
  refused: Refusal[]
}

/**
 * Reads what the person named with `@`, by the tools and rules of the session: what has to be asked is asked, and what
 * is refused becomes a note. `agents` are the subagents that this session may start.
 */
export async function attachMentions(
  text: string,
  host: Omit<CallHost, "turn" | "onState">,
  agents: readonly string[],
): Promise<MentionedFiles> {
  const { directory, worktree } = host
  const servers = resourceServers(host.offered.get(readResourceID)?.schema)
  const mentions = text.includes("@") ? findMentions(text, { directory, worktree, agents, servers }) : []
  const result: MentionedFiles = { files: [], notes: [], refused: [] }
  const attached = mentions.filter((mention) => mention.kind !== "agent")
  for (const { kind, name } of mentions) {
    if (kind !== "agent") continue
    result.notes.push(
      `The person names the subagent ${name} (@${name}): hand that part of the work to it with task.`,
    )
  }
  if (attached.length === 0) return result

  const turn = newTurn()
  const calls = attached.map((entry) => {
    const { tool, input } = showCall(entry)
    return { callID: newId("call"), tool, raw: JSON.stringify(input) }
  })
  const outcomes = await runCalls(calls, { ...host, turn, onState: async () => {} })
  attached.forEach((entry, index) => {
    const state = outcomes[index]?.state
    if (state) add(entry, shownFiles(entry, state))
  })
  return { ...result, refused: turn.refused }

  function add({ name }: Attached, shown: ReturnType<typeof shownFiles>): void {
    if ("files" in shown) result.files.push(...shown.files)
    else result.notes.push(`@${name} was not attached: ${shown.problem}`)
  }
}
