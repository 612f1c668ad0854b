import { useEffect, useRef, useState } from "preact/hooks"
import { type SessionState, usageOf } from "../src/view/session-state.ts"
import { title } from "./current-session.ts"
import { Icon, type IconName } from "./icons.tsx"
import { choicesOf } from "./project-choices.tsx"
import { compactSession, dialog, forkAt, isDrawerOpen } from "./session-actions.ts"

/** Title, usage and menu of the open session. */
export function SessionHeader({ state }: { state: SessionState | undefined }) {
  return (
    <header class="bar">
      <button
        type="button"
        class="quiet drawer-button"
        aria-label="Sessions"
        aria-expanded={isDrawerOpen}
        onClick={() => {
          isDrawerOpen.value = true
        }}
      >
        <Icon name="list" />
      </button>
      <div class="bar-title">
        <h1>{title}</h1>
        {state && <p class="muted small">{state.session.directory}</p>}
      </div>
      {state && <Usage state={state} />}
      {state && <SessionMenu state={state} />}
    </header>
  )
}

/** Cost of the session and its subagents, and the number of tokens in the context. */
function Usage({ state }: { state: SessionState }) {
  const { contextTokens, cost } = usageOf(state)
  const { model, directory } = state.session
  const id = model && `${model.providerID}/${model.modelID}`
  const room = choicesOf(directory)?.models.find((each) => each.id === id)?.limit.context
  const percent = room ? Math.min(100, Math.round((100 * contextTokens) / room)) : undefined
  if (contextTokens === 0) return null
  return (
    <div class="usage" title={`${contextTokens}${room ? ` of ${room}` : ""} tokens in the context`}>
      {cost > 0 && <span>${cost < 0.1 ? cost.toFixed(4) : cost.toFixed(2)}</span>}
      <span class={percent !== undefined && percent > 80 ? "full" : ""}>
        {short(contextTokens)}
        <span class="unit"> tokens</span>
        {percent !== undefined && ` · ${percent} %`}
      </span>
    </div>
  )
}

function short(count: number): string {
  return count < 1_000 ? String(count) : `${(count / 1_000).toFixed(count < 10_000 ? 1 : 0)}k`
}

function SessionMenu({ state: { session } }: { state: SessionState }) {
  const [isOpen, setOpen] = useState(false)
  const menu = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const items: { icon: IconName; label: string; isDanger?: boolean; run(): unknown }[] = [
    { icon: "undo", label: "Undo the last turn…", run: () => open("undo") },
    ...(session.undone?.length ? [{ icon: "redo" as const, label: "Redo…", run: () => open("redo") }] : []),
    { icon: "fork", label: "Fork", run: () => forkAt() },
    { icon: "list", label: "Summarize older messages", run: compactSession },
    { icon: "shield", label: "Permissions…", run: () => open("grants") },
    { icon: "edit", label: "Rename…", run: () => open("rename") },
    { icon: "close", label: "Delete…", run: () => open("delete"), isDanger: true },
  ]

  function open(name: NonNullable<typeof dialog.value>) {
    dialog.value = name
  }

  useEffect(() => {
    if (!isOpen) return
    menu.current?.querySelector("button")?.focus()
    const leave = (event: Event) => {
      if (!menu.current?.parentElement?.contains(event.target as Node)) setOpen(false)
    }
    document.addEventListener("pointerdown", leave)
    return () => document.removeEventListener("pointerdown", leave)
  }, [isOpen])

  function onKeyDown(event: KeyboardEvent) {
    const all = [...(menu.current?.querySelectorAll("button") ?? [])]
    const index = all.indexOf(document.activeElement as HTMLButtonElement)
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) all[(index + step + all.length) % all.length]?.focus()
    else if (event.key === "Escape" || event.key === "Tab") {
      setOpen(false)
      button.current?.focus()
    } else return
    event.preventDefault()
    event.stopPropagation()
  }

  return (
    <div class="menu">
      <button
        type="button"
        class="quiet"
        ref={button}
        aria-label="Session menu"
        aria-haspopup="menu"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name="more" />
      </button>
      {isOpen && (
        <div class="menu-items" role="menu" aria-label="Session" ref={menu} onKeyDown={onKeyDown}>
          {items.map(({ icon, label, isDanger, run }) => (
            <button
              key={label}
              type="button"
              class={isDanger ? "danger" : ""}
              role="menuitem"
              onClick={() => {
                setOpen(false)
                button.current?.focus()
                void run()
              }}
            >
              <Icon name={icon} /> {label}
            </button>
          ))}
        </div>
      )}
    </div>
  )
}
