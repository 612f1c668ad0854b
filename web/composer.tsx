import { signal } from "@preact/signals"
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import type { Delivery } from "../src/schema/input.ts"
import type { SessionState } from "../src/view/session-state.ts"
import { currentSession } from "./current-session.ts"
import { Icon } from "./icons.tsx"
import { attempt } from "./notices.tsx"
import { AgentAndModel } from "./project-choices.tsx"
import { stopRun } from "./session-actions.ts"

/** Unsent texts of sessions, by session. */
const drafts = signal<ReadonlyMap<string, string>>(new Map())

const deliveries: readonly [Delivery, string][] = [
  ["steer", "Next step"],
  ["queue", "After the run"],
  ["now", "Interrupt now"],
]

/** The message box, with the choice of agent, model and time of delivery. */
export function Composer({ state: { session, isRunning } }: { state: SessionState }) {
  const [delivery, setDelivery] = useState<Delivery>("steer")
  const [isBusy, setBusy] = useState(false)
  const text = drafts.value.get(session.id) ?? ""

  function setText(value: string) {
    drafts.value = new Map(drafts.value).set(session.id, value)
  }

  async function send(how: Delivery | undefined) {
    const content = text.trim()
    if (content === "" || isBusy) return
    setBusy(true)
    setText("")
    const receipt = await attempt(() => currentSession().send(content, { delivery: how }))
    setBusy(false)
    if (!receipt) setText(text)
  }

  function change(values: { agent?: string; model?: string }) {
    void attempt(() => currentSession().update(values))
  }

  const model = session.model && `${session.model.providerID}/${session.model.modelID}`
  return (
    <form
      class="composer"
      aria-label="Message"
      onSubmit={(event) => {
        event.preventDefault()
        void send(isRunning ? delivery : undefined)
      }}
    >
      <MessageBox
        value={text}
        placeholder={isRunning ? "Steer the agent…" : "Message the agent…"}
        onInput={setText}
        onSend={(isQueued) => send(isRunning ? (isQueued ? "queue" : delivery) : undefined)}
      />
      <div class="composer-row">
        <AgentAndModel directory={session.directory} agent={session.agent} model={model} onChange={change} />
        {isRunning && (
          <select
            class="choice"
            aria-label="When the agent reads the message"
            title="When the agent reads the message"
            value={delivery}
            onChange={({ currentTarget }) => setDelivery(currentTarget.value as Delivery)}
          >
            {deliveries.map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        )}
        <span class="spacer" />
        {isRunning && (
          <button
            type="button"
            class="stop"
            onClick={stopRun}
            aria-label="Stop"
            title="Stop the run (Ctrl .)"
          >
            <Icon name="stop" /> <span class="stop-label">Stop</span>
          </button>
        )}
        <button type="submit" class="primary send" disabled={isBusy || text.trim() === ""} aria-label="Send">
          <Icon name="send" />
        </button>
      </div>
    </form>
  )
}

/** A text field that grows with its text. Enter sends, with Ctrl after the run. */
export function MessageBox({
  value,
  placeholder,
  onInput,
  onSend,
}: {
  value: string
  placeholder: string
  onInput(value: string): void
  onSend(isQueued: boolean): void
}) {
  const box = useRef<HTMLTextAreaElement>(null)
  useLayoutEffect(() => {
    const element = box.current
    if (!element) return
    element.style.height = "auto"
    element.style.height = `${element.scrollHeight}px`
  }, [value])
  return (
    <textarea
      id="message-box"
      ref={box}
      rows={1}
      aria-label="Message"
      placeholder={placeholder}
      value={value}
      onInput={({ currentTarget }) => onInput(currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === "Escape") event.currentTarget.blur()
        if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
        event.preventDefault()
        onSend(event.ctrlKey || event.metaKey)
      }}
    />
  )
}
