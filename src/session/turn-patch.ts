import type { MessageWithParts } from "../schema/message.ts"
import type { PatchPart } from "../schema/part.ts"
import type { TurnRecord } from "../snapshot/turn-changes.ts"
import { newId } from "../util/id.ts"
import type { Recorder } from "./recorder.ts"

/** Stores what a turn did to files with the message that began it: one part, which is there from the first change on. */
export function createTurnPatch(
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
