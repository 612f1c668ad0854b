import type { Store } from "../store/store.ts"
import type { TodoCapability } from "../tool/context.ts"
import type { Recorder } from "./recorder.ts"

/** The to-do list of a session, kept in the store and announced when it changes. */
export function createTodoCapability(sessionID: string, store: Store, recorder: Recorder): TodoCapability {
  return {
    read: () => store.todos(sessionID),
    write: (todos) => recorder.todos(todos),
  }
}
