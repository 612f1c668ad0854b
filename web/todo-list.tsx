import { useState } from "preact/hooks"
import type { SessionState } from "../src/view/session-state.ts"
import { Icon, Spinner } from "./icons.tsx"

/** The session's to-do list. Shows only the current entry until the user expands the list. */
export function TodoList({ state: { todos, isRunning } }: { state: SessionState }) {
  const [isOpen, setOpen] = useState(false)
  const done = todos.filter(({ status }) => status === "completed" || status === "cancelled").length
  if (todos.length === 0 || (done === todos.length && !isRunning)) return null
  const current =
    todos.find(({ status }) => status === "in_progress") ?? todos.find(({ status }) => status === "pending")
  return (
    <section class="panel todos" aria-label="To-do list">
      <button type="button" class="panel-head" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span class="count">
          {done}/{todos.length}
        </span>
        <span class="current">{current?.content ?? "All done"}</span>
        <span class="chevron">
          <Icon name="down" />
        </span>
      </button>
      {isOpen && (
        <ul>
          {todos.map(({ content, status }) => (
            <li key={content} class={status}>
              {status === "in_progress" && isRunning ? (
                <Spinner />
              ) : (
                <span class={`box ${status}`}>{status === "completed" && <Icon name="check" />}</span>
              )}
              <span>
                {content}
                <span class="visually-hidden">, {status.replace("_", " ")}</span>
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
