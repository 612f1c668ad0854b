import type { ChangeCapability, TurnRecord } from "../files/turn-changes.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { PatchPart } from "../schema/part.ts"
import { newId } from "../util/id.ts"
import type { Conversation } from "./conversation.ts"
import type { SessionEngine } from "./session-engine.ts"

/**
 * Returns the record of the current turn's file changes, and creates it if necessary. A subagent's changes belong to
 * the turn of its root session. Stores a new record with the last message of the conversation, which is the message
 * that started the turn.
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
  const patch = createTurnPatch(begun)
  const changes = watchChanges({
    save: (record) => recorder.write({ parts: [patch(record)] }),
    note: (record) => recorder.note({ parts: [patch(record)] }),
  })
  turns.set(root, changes)
  return changes
}

/** Ends the turn after a run of a root session. A subagent's run does not end the turn. */
export function endTurn(sessionID: string, { lineage, turns }: SessionEngine): void {
  if (lineage.rootOf(sessionID) === sessionID) turns.delete(sessionID)
}

/**
 * Returns a function that writes the file changes of a turn to one part of the message that started it. The first
 * change creates the part.
 */
function createTurnPatch({ message, parts }: MessageWithParts): (record: TurnRecord) => PatchPart {
  let patch: PatchPart | undefined
  return ({ files, unseen }) => {
    if (!patch) {
      const { sessionID, id: messageID } = message
      patch = { id: newId("prt"), sessionID, messageID, type: "patch", files }
      parts.push(patch)
    }
    patch.files = files
    if (unseen.length > 0) patch.unseen = unseen
    return { ...patch }
  }
}
