import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import type { PatchPart } from "../src/schema/part.ts"
import type { UndoResult } from "../src/session/handle.ts"
import { counted } from "../src/util/words.ts"
import { displayPath } from "../src/view/display-path.ts"
import { hasOlder, state, title } from "./current-session.ts"
import { errorText, refusedFiles } from "./errors.ts"
import { GrantList } from "./grants.tsx"
import { notify } from "./notices.tsx"
import { changeHistory, deleteSession, dialog, renameSession } from "./session-actions.ts"
import { ShortcutList } from "./shortcuts.tsx"

/** The open dialog, if any. */
export function Dialogs() {
  switch (dialog.value) {
    case "undo":
    case "redo":
      return <HistoryDialog direction={dialog.value} />
    case "rename":
      return <RenameDialog />
    case "delete":
      return <DeleteDialog />
    case "grants":
      return (
        <Modal label="Allowed without asking">
          <GrantList />
          <div class="actions">
            <button type="button" onClick={close}>
              Close
            </button>
          </div>
        </Modal>
      )
    case "shortcuts":
      return (
        <Modal label="Keyboard shortcuts">
          <ShortcutList />
          <div class="actions">
            <button type="button" onClick={close}>
              Close
            </button>
          </div>
        </Modal>
      )
    default:
      return null
  }
}

function close(): void {
  dialog.value = undefined
}

function Modal({ label, children }: { label: string; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const before = document.activeElement
    element.current?.showModal()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    // The close event arrives later than Escape, and possibly later than the next key.
    <dialog ref={element} aria-label={label} onCancel={close} onClose={close}>
      <h2>{label}</h2>
      {children}
    </dialog>
  )
}

/** Asks before an undo or redo, with the list of files. */
function HistoryDialog({ direction }: { direction: "undo" | "redo" }) {
  const [problem, setProblem] = useState<{ text: string; refused: number }>()
  const [isBusy, setBusy] = useState(false)
  const patch = nextPatch(direction)
  // A redo does not change the files that the undo skipped.
  const files = patch?.files.filter(({ left }) => !left) ?? []
  const { refused = 0 } = problem ?? {}
  const hasOthers = refused > 0 && refused < files.length
  const worktree = state.value?.session.worktree ?? ""

  async function run(others: boolean) {
    setBusy(true)
    try {
      report(await changeHistory(direction, { others }), direction)
      close()
    } catch (error) {
      setProblem({ text: errorText(error), refused: refusedFiles(error) })
    }
    setBusy(false)
  }

  return (
    <Modal label={direction === "undo" ? "Undo the last turn" : "Redo the undone turn"}>
      {patch ? (
        <>
          <p>
            {direction === "undo"
              ? "These files will be restored to their content before the turn:"
              : "The changes to these files will be applied again:"}
          </p>
          <ul class="files">
            {files.map(({ path, before, after }) => (
              <li key={path}>
                <code>{displayPath(path, worktree)}</code>
                <span class="muted small">
                  {changeOf(direction, before !== undefined, after !== undefined)}
                </span>
              </li>
            ))}
          </ul>
          {patch.unseen && patch.unseen.length > 0 && (
            <p class="muted small">Changes that were not tracked remain: {patch.unseen.join("; ")}</p>
          )}
        </>
      ) : (
        <p>
          No loaded turn can be {direction === "undo" ? "undone" : "redone"}.
          {hasOlder.value && " Scroll up to load older messages."}
        </p>
      )}
      <p class="muted small">The conversation does not change.</p>
      {problem && (
        <p class="problem" role="alert">
          {problem.text}
        </p>
      )}
      <div class="actions">
        <button type="button" class="primary" disabled={isBusy || !patch} onClick={() => run(hasOthers)}>
          {hasOthers ? "Restore the other files" : direction === "undo" ? "Undo" : "Redo"}
        </button>
        <button type="button" onClick={close}>
          Cancel
        </button>
      </div>
    </Modal>
  )
}

/** Returns the file changes that the next undo or redo affects, or undefined if their message is not loaded. */
function nextPatch(direction: "undo" | "redo"): PatchPart | undefined {
  const patches = (state.value?.messages ?? []).flatMap(({ parts }) => parts.filter(isPatch))
  if (direction === "undo") return patches.findLast(({ undone }) => !undone)
  const last = state.value?.session.undone?.at(-1)
  return patches.find(({ messageID }) => messageID === last)
}

function isPatch(part: { type: string }): part is PatchPart {
  return part.type === "patch"
}

function changeOf(direction: "undo" | "redo", existed: boolean, exists: boolean): string {
  const [from, to] = direction === "undo" ? [exists, existed] : [existed, exists]
  if (from && !to) return "removed"
  return from ? "changed" : "created"
}

function report({ files, refused, unseen }: UndoResult, direction: "undo" | "redo"): void {
  const count = counted(files.length, "file")
  const left = refused.length > 0 ? ` Left ${counted(refused.length, "file")} unchanged.` : ""
  notify(
    `${direction === "undo" ? "Undid" : "Redid"} the changes to ${count}.${left} ${unseen.join(" ")}`.trim(),
  )
}

function RenameDialog() {
  const [text, setText] = useState(state.value?.session.title ?? "")
  async function submit(event: Event) {
    event.preventDefault()
    await renameSession(text.trim())
    close()
  }
  return (
    <Modal label="Rename the session">
      <form onSubmit={submit}>
        <input
          aria-label="Title"
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
        <div class="actions">
          <button type="submit" class="primary" disabled={text.trim() === ""}>
            Rename
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </div>
      </form>
    </Modal>
  )
}

function DeleteDialog() {
  return (
    <Modal label="Delete the session">
      <p>“{title}” and its messages will be deleted. The project files are kept. This cannot be undone.</p>
      <div class="actions">
        <button
          type="button"
          class="danger"
          onClick={async () => {
            await deleteSession()
            close()
          }}
        >
          Delete
        </button>
        <button type="button" onClick={close}>
          Cancel
        </button>
      </div>
    </Modal>
  )
}
