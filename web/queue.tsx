import { useRef, useState } from "preact/hooks"
import type { Input } from "../src/schema/input.ts"
import type { SessionState } from "../src/view/session-state.ts"
import { currentSession } from "./current-session.ts"
import { Icon } from "./icons.tsx"
import { attempt } from "./notices.tsx"

/** The inputs that have not been delivered. */
export function Queue({ state: { inputs } }: { state: SessionState }) {
  if (inputs.length === 0) return null
  const isPaused = inputs.some(({ paused }) => paused)
  return (
    <section class="panel queue" aria-label="Waiting messages">
      <header>
        <h2>Waiting</h2>
        <span class="muted small">{isPaused ? "paused" : inputs.length}</span>
        <span class="spacer" />
        {isPaused && (
          <button type="button" onClick={() => attempt(() => currentSession().inputs.resume())}>
            Continue
          </button>
        )}
      </header>
      <ol>
        {inputs.map((input, index) => (
          <QueuedInput key={input.id} input={input} index={index} count={inputs.length} />
        ))}
      </ol>
    </section>
  )
}

const when = { now: "now", steer: "next step", queue: "after the run" } as const

function QueuedInput({ input, index, count }: { input: Input; index: number; count: number }) {
  const [text, setText] = useState<string>()
  const box = useRef<HTMLTextAreaElement>(null)
  const { id, claimedBy, held, problem } = input

  const change = (edit: { text?: string; held?: boolean; position?: number }) =>
    attempt(() => currentSession().inputs.edit(id, edit))

  /** Holds the input first, so that it is not delivered while the user is editing it. */
  async function edit() {
    if (!(await change({ held: true }))) return
    setText(input.text)
    requestAnimationFrame(() => box.current?.focus())
  }

  async function save(saved: string | undefined) {
    const done = await change(saved === undefined ? { held: false } : { text: saved, held: false })
    if (done) setText(undefined)
  }

  if (text !== undefined)
    return (
      <li class="editing">
        <textarea
          ref={box}
          aria-label="Waiting message"
          value={text}
          rows={2}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") void save(undefined)
            if (event.key === "Enter" && !event.shiftKey && !event.isComposing && text.trim() !== "") {
              event.preventDefault()
              void save(text)
            }
          }}
        />
        <div class="actions">
          <button type="button" class="primary" disabled={text.trim() === ""} onClick={() => save(text)}>
            Save
          </button>
          <button type="button" onClick={() => save(undefined)}>
            Cancel
          </button>
        </div>
      </li>
    )
  return (
    <li>
      <div class="queued-text">
        {input.text}
        <span class="muted small">
          {input.files?.length ? `${input.files.map(({ filename }) => filename).join(", ")} · ` : ""}
          {problem ?? (claimedBy === undefined ? (held ? "held" : when[input.delivery]) : "being delivered")}
        </span>
      </div>
      {claimedBy === undefined && (
        <div class="queued-actions">
          {held && (
            <button type="button" onClick={() => change({ held: false })}>
              Release
            </button>
          )}
          <button
            type="button"
            class="quiet"
            aria-label="Move up"
            disabled={index === 0}
            onClick={() => change({ position: index - 1 })}
          >
            <Icon name="up" />
          </button>
          <button
            type="button"
            class="quiet"
            aria-label="Move down"
            disabled={index === count - 1}
            onClick={() => change({ position: index + 1 })}
          >
            <Icon name="down" />
          </button>
          <button type="button" class="quiet" aria-label="Edit" onClick={edit}>
            <Icon name="edit" />
          </button>
          <button
            type="button"
            class="quiet"
            aria-label="Withdraw"
            onClick={() => attempt(() => currentSession().inputs.withdraw(id))}
          >
            <Icon name="close" />
          </button>
        </div>
      )}
    </li>
  )
}
