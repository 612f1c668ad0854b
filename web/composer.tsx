import { signal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { Delivery, PromptFile } from "../src/schema/input.ts"
import type { SessionState } from "../src/view/session-state.ts"
import { AttachButton, AttachmentList, readFiles } from "./attachments.tsx"
import { focusMessageBox, leaveCard } from "./card-focus.ts"
import { useCompletion } from "./completion.tsx"
import { currentSession, isNewSession } from "./current-session.ts"
import { Icon } from "./icons.tsx"
import { attempt } from "./notices.tsx"
import { AgentAndModel } from "./project-choices.tsx"
import { stopRun } from "./session-actions.ts"

/** A message that the user has not sent yet. */
export interface Draft {
  text: string
  files: readonly PromptFile[]
}

/** A draft without content. */
export const emptyDraft: Draft = { text: "", files: [] }

/** Drafts, keyed by session id. */
const drafts = signal<ReadonlyMap<string, Draft>>(new Map())

const deliveries: readonly [Delivery, string][] = [
  ["steer", "Next step"],
  ["queue", "After the run"],
  ["now", "Interrupt now"],
]

/** The message box of a session, with the choice of agent, model and delivery time. */
export function Composer({ state: { session, isRunning } }: { state: SessionState }) {
  const [delivery, setDelivery] = useState<Delivery>("steer")
  const [isBusy, setBusy] = useState(false)
  const draft = drafts.value.get(session.id) ?? emptyDraft

  // The message box that had the focus on the start page no longer exists.
  useEffect(() => {
    if (isNewSession.value) leaveCard(null)
    isNewSession.value = false
  }, [])

  function setDraft(value: Draft) {
    drafts.value = new Map(drafts.value).set(session.id, value)
  }

  async function send(isQueued: boolean) {
    const how = isRunning ? (isQueued ? "queue" : delivery) : undefined
    const { text, files } = draft
    setBusy(true)
    setDraft(emptyDraft)
    const receipt = await attempt(() => currentSession().send(text.trim(), { delivery: how, files }))
    setBusy(false)
    if (!receipt) setDraft(draft)
  }

  function change(values: { agent?: string; model?: string }) {
    void attempt(() => currentSession().update(values))
  }

  const model = session.model && `${session.model.providerID}/${session.model.modelID}`
  return (
    <PromptForm
      label="Message"
      sendLabel="Send"
      placeholder={isRunning ? "Steer the agent…" : "Message the agent…"}
      directory={session.directory}
      draft={draft}
      canSend={!isBusy}
      onChange={setDraft}
      onSend={send}
    >
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
        <button type="button" class="stop" onClick={stopRun} aria-label="Stop" title="Stop the run (Ctrl+.)">
          <Icon name="stop" /> <span class="stop-label">Stop</span>
        </button>
      )}
    </PromptForm>
  )
}

/** A form for a message with files. `children` are the choices next to the send button. */
export function PromptForm({
  label,
  sendLabel,
  placeholder,
  directory,
  draft,
  canSend,
  onChange,
  onSend,
  children,
}: {
  label: string
  sendLabel: string
  placeholder: string
  /** Directory of the project whose commands and files are completed. */
  directory: string
  draft: Draft
  canSend: boolean
  onChange(draft: Draft): void
  onSend(isQueued: boolean): void
  children: ComponentChildren
}) {
  const latest = useRef(draft)
  latest.current = draft
  const isEmpty = draft.text.trim() === "" && draft.files.length === 0

  async function add(files: Iterable<File>) {
    const next = await readFiles(files, latest.current.files)
    setFiles(next)
  }

  function setFiles(files: readonly PromptFile[]) {
    onChange({ ...latest.current, files })
    focusMessageBox()
  }

  function send(isQueued: boolean) {
    if (canSend && !isEmpty) onSend(isQueued)
  }

  const isDropping = useDrop(add)
  return (
    <form
      class={`composer ${isDropping ? "dropping" : ""}`}
      aria-label={label}
      onSubmit={(event) => {
        event.preventDefault()
        send(false)
      }}
    >
      <AttachmentList files={draft.files} onChange={setFiles} />
      <MessageBox
        value={draft.text}
        placeholder={isDropping ? "Drop the files here" : placeholder}
        directory={directory}
        onInput={(text) => onChange({ ...draft, text })}
        onFiles={add}
        onSend={send}
      />
      <div class="composer-row">
        <AttachButton onFiles={add} />
        {children}
        <button type="submit" class="primary send" disabled={!canSend || isEmpty} aria-label={sendLabel}>
          <Icon name="send" />
        </button>
      </div>
    </form>
  )
}

/** Calls `add` with the files that the user drops on the page. Returns true while files are over the page. */
function useDrop(add: (files: Iterable<File>) => void): boolean {
  const [isOver, setOver] = useState(false)
  const take = useRef(add)
  take.current = add
  useEffect(() => {
    const leave = new AbortController()
    const on = (type: "dragover" | "dragleave" | "drop", handle: (event: DragEvent) => void) =>
      document.addEventListener(
        type,
        (event) => event.dataTransfer?.types.includes("Files") && handle(event),
        { signal: leave.signal },
      )
    on("dragover", (event) => {
      event.preventDefault()
      setOver(true)
    })
    on("dragleave", ({ relatedTarget }) => relatedTarget || setOver(false))
    on("drop", (event) => {
      event.preventDefault()
      setOver(false)
      take.current([...(event.dataTransfer?.files ?? [])])
    })
    return () => leave.abort()
  }, [])
  return isOver
}

/** A text field that grows with its text. Enter sends the message. Ctrl+Enter queues it until the run ends. */
function MessageBox({
  value,
  placeholder,
  directory,
  onInput,
  onFiles,
  onSend,
}: {
  value: string
  placeholder: string
  directory: string
  onInput(value: string): void
  onFiles(files: Iterable<File>): void
  onSend(isQueued: boolean): void
}) {
  const box = useRef<HTMLTextAreaElement>(null)
  const completion = useCompletion({ box, value, directory, onInput })
  useLayoutEffect(() => {
    const element = box.current
    if (!element) return
    element.style.height = "auto"
    element.style.height = `${element.scrollHeight}px`
  }, [value])
  return (
    <>
      {completion.list}
      <textarea
        id="message-box"
        ref={box}
        rows={1}
        aria-label="Message"
        {...completion.attributes}
        placeholder={placeholder}
        value={value}
        onInput={({ currentTarget }) => {
          onInput(currentTarget.value)
          void completion.suggest()
        }}
        onClick={completion.close}
        onBlur={completion.close}
        onPaste={(event) => {
          const { clipboardData: data } = event
          // Office programs also copy a picture of the text.
          if (!data || data.files.length === 0 || data.types.includes("text/plain")) return
          event.preventDefault()
          onFiles([...data.files])
        }}
        onKeyDown={(event) => {
          if (completion.onKey(event)) return
          if (event.key === "Escape") event.currentTarget.blur()
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
          event.preventDefault()
          onSend(event.ctrlKey || event.metaKey)
        }}
      />
    </>
  )
}
