import type { Turn } from "../call/context.ts"
import type { UserMessage } from "../schema/message.ts"
import { addToPrompt, postPrompt } from "./post-message.ts"
import type { SessionAgent } from "./session-run.ts"

/**
 * Posts the steering inputs that wait in the queue, in order. If the run is interrupted, the remaining inputs stay in
 * the queue. Returns the last message, or undefined if none was posted.
 */
export async function postSteering(active: SessionAgent, turn: Turn): Promise<UserMessage | undefined> {
  const { engine, conversation, model, signal } = active.run
  const { agent } = active
  let user: UserMessage | undefined
  for (const input of await conversation.inputs.claim("steer")) {
    if (signal.aborted) {
      await conversation.inputs.release()
      break
    }
    const { text, files = [] } = input
    user = await postPrompt(conversation, {
      text,
      files,
      input,
      notes: [],
      agent,
      model,
      plugins: engine.plugins,
      signal,
    })
    turn.refused.push(...(await addToPrompt(active, { text, user })))
  }
  return user
}
