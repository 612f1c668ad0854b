import type { ToolPart } from "../schema/part.ts"
import type { JobInfo } from "../tool/context.ts"
import { createSpillOpener } from "../tool/spill.ts"
import { type CompactionInput, type CompactionResult, compact } from "./compact.ts"
import type { Conversation } from "./conversation.ts"
import type { SessionServices } from "./services.ts"

/** {@link compact} with what the conversation and its engine give to it. Throws what that throws. */
export async function compactConversation(
  conversation: Conversation,
  services: SessionServices,
  choice: Pick<CompactionInput, "agent" | "model" | "auto" | "signal">,
): Promise<CompactionResult> {
  const { session, recorder, files } = conversation
  const { store, jobs, plugins, streamLimits: limits } = services
  const isOpen = (job: JobInfo) => job.sessionID === session.id && job.status === "running"
  const history = await conversation.history()
  const todos = await store.todos(session.id)
  try {
    return await compact({
      session,
      history,
      recorder,
      todos,
      files,
      jobs: jobs.list().filter(isOpen),
      spill: (part, output) => spill(session.id, services, part, output),
      limits,
      plugins,
      ...choice,
    })
  } finally {
    conversation.shortened(history)
  }
}

/** Writes an output beside those that were too long from the beginning; returns its path. */
function spill(
  sessionID: string,
  { spillRoot, spillBytes: maxBytes, mask }: SessionServices,
  part: ToolPart,
  output: string,
): string {
  const file = createSpillOpener({
    directory: `${spillRoot}/${sessionID}`,
    name: part.id,
    ...(maxBytes === undefined ? {} : { maxBytes }),
    ...(mask === undefined ? {} : { mask }),
  })()
  try {
    file.write(output)
  } finally {
    file.close()
  }
  return file.path
}
