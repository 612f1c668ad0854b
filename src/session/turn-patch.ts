import type { ChangeCapability, TurnRecord } from "../files/turn-changes.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { PatchPart } from "../schema/part.ts"
import { newId } from "../util/id.ts"
import type { Conversation } from "./conversation.ts"
import type { Recorder } from "./recorder.ts"
import type { SessionServices } from "./services.ts"

/**
 * Where the calls of a run note what they do to files. A subagent's changes are part of the turn that it works for;
 * another turn is that of the message that began it, the last of the conversation.
 */
export async function changesOfTurn(
  { session, recorder, history }: Conversation,
  { lineage, turns, watchChanges }: TurnServices,
): Promise<ChangeCapability | undefined> {
  const root = lineage.rootOf(session.id)
  const [turn, begun] = [turns.get(root), (await history()).at(-1)]
  if (turn || !begun) return turn
  const changes = watchChanges(createTurnPatch(begun, recorder))
  turns.set(root, changes)
  return changes
}

/** To be called when a run has ended; ends the turn where it was the one that began it. */
export function endTurn(sessionID: string, { lineage, turns }: TurnServices): void {
  if (lineage.rootOf(sessionID) === sessionID) turns.delete(sessionID)
}

type TurnServices = Pick<SessionServices, "lineage" | "turns" | "watchChanges">

/** Stores what a turn did to files with the message that began it: one part, which is there from the first change on. */
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
