import type { ChangeCapability, TurnRecord } from "../files/turn-changes.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { PatchPart } from "../schema/part.ts"
import { newId } from "../util/id.ts"
import type { Conversation } from "./conversation.ts"
import type { Recorder } from "./recorder.ts"
import type { SessionEngine } from "./session-engine.ts"

/**
 * Returns the record of a turn's file changes. A subagent's changes belong to the turn that it works for. Any other
 * turn belongs to the message that started it, the last of the conversation.
 */
export async function changesOfTurn({
  engine,
  session,
  recorder,
  history,
}: Conversation): Promise<ChangeCapability | undefined> {
  const { lineage, turns, watchChanges } = engine
  const root = lineage.rootOf(session.id)
  const [turn, begun] = [turns.get(root), (await history()).at(-1)]
  if (turn || !begun) return turn
  const changes = watchChanges(createTurnPatch(begun, recorder))
  turns.set(root, changes)
  return changes
}

/** Ends the turn after a run, if the run started it. */
export function endTurn(sessionID: string, { lineage, turns }: SessionEngine): void {
  if (lineage.rootOf(sessionID) === sessionID) turns.delete(sessionID)
}

/** Stores the file changes of a turn in one part of the message that started it, from the first change on. */
function createTurnPatch(
  { message, parts }: MessageWithParts,
  recorder: Recorder,
): (record: TurnRecord) => Promise<void> {
  let patch: PatchPart | undefined
  return async ({ files, unseen }) => {
    if (!patch) {
      const { sessionID, id: messageID } = message
      patch = { id: newId("prt"), sessionID, messageID, type: "patch", files }
      parts.push(patch)
    }
    patch.files = files
    if (unseen.length > 0) patch.unseen = unseen
    await recorder.write({ parts: [{ ...patch }] })
  }
}
