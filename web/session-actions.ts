import { signal } from "@preact/signals"
import type { UndoResult } from "../src/session/handle.ts"
import { api } from "./connection.ts"
import { currentSession, openSession, state } from "./current-session.ts"
import { attempt, notify } from "./notices.tsx"
import { removeSession } from "./session-list-data.ts"

/** A dialog over the page. */
export type Dialog = "undo" | "redo" | "rename" | "delete" | "grants" | "shortcuts"

/** The open dialog. */
export const dialog = signal<Dialog | undefined>(undefined)

/** True while the list of sessions covers a narrow page. */
export const isDrawerOpen = signal(false)

/** Stops the run and pauses the queue. Does nothing if no run is active. */
export async function stopRun(): Promise<void> {
  if (state.value?.isRunning) await attempt(() => currentSession().interrupt())
}

/** Continues the open session in a copy. With `at`, the copy ends after this message's turn. */
export async function forkAt(at?: string): Promise<void> {
  const fork = await attempt(() => api.sessions.fork(currentSession().id, { at }))
  if (!fork) return
  openSession(fork.id)
  notify("This is a copy of the session. The files are shared with the original.")
}

/** Replaces old messages in the model's history with a summary. */
export async function compactSession(): Promise<void> {
  notify("Summarizing older messages…")
  const result = await attempt(() => currentSession().compact())
  if (result)
    notify(
      result.before > result.after
        ? `The history is shorter: the model now reads ${result.after} characters instead of ${result.before}.`
        : "The history is already short. Nothing was changed.",
    )
}

/**
 * Undoes or redoes a turn. `others` skips files that cannot be restored. Without `others`, throws `ClientError` if a
 * file cannot be restored.
 */
export async function changeHistory(
  direction: "undo" | "redo",
  choice: { others?: boolean } = {},
): Promise<UndoResult> {
  return currentSession()[direction](choice)
}

/** Changes the title of the open session. */
export async function renameSession(title: string): Promise<void> {
  await attempt(() => currentSession().update({ title }))
}

/** Deletes the open session. */
export async function deleteSession(): Promise<void> {
  const { id } = currentSession()
  const deleted = await attempt(() => api.sessions.delete(id))
  if (deleted === undefined) return
  openSession(undefined)
  removeSession(id)
  notify("The session was deleted.")
}
