import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import type { PermissionReply, PermissionRequest } from "../src/schema/permission.ts"
import { createRequestCard } from "../src/view/request-card.ts"
import { isWriting, leaveCard } from "./card-focus.ts"
import { api } from "./connection.ts"
import { answersHere } from "./current-session.ts"
import { DiffView } from "./diff-view.tsx"
import { Icon } from "./icons.tsx"
import { attempt, notify } from "./notices.tsx"

/**
 * A permission request: what is requested, why, and the possible answers. On the first card, the safe answer receives
 * the focus, unless the user is writing.
 */
export function PermissionCard({
  request,
  worktree,
  isFirst,
}: {
  request: PermissionRequest
  worktree: string
  isFirst: boolean
}) {
  const card = useMemo(() => createRequestCard(request, worktree), [request, worktree])
  const [patterns, setPatterns] = useState<string[]>()
  const [reason, setReason] = useState("")
  const [isBusy, setBusy] = useState(false)
  const reject = useRef<HTMLButtonElement>(null)
  const firstRule = useRef<HTMLInputElement>(null)
  const canAlways = card.rules.length > 0

  useEffect(() => {
    if (isFirst && !isWriting()) reject.current?.focus({ preventScroll: true })
  }, [isFirst])

  async function answer(reply: PermissionReply) {
    if (isBusy) return
    setBusy(true)
    answersHere(request.id)
    const outcome = await attempt(() => api.reply(request.id, reply))
    setBusy(false)
    if (outcome === "already") notify("The request has already been answered in another window.")
    if (outcome === "unknown") notify("This request has ended. The run may have been stopped.")
    if (outcome !== undefined) leaveCard(reject.current)
  }

  const once = () => answer({ reply: "once" })
  const always = (scope: "session" | "project") => answer({ reply: "always", scope, patterns })
  const refuse = () => answer({ reply: "reject", message: reason.trim() || undefined })
  const edit = () => {
    setPatterns((before) => before ?? card.rules.map(({ pattern }) => pattern))
    requestAnimationFrame(() => firstRule.current?.focus())
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLInputElement) return
    const actions: Record<string, (() => unknown) | false> = {
      y: once,
      s: canAlways && (() => always("session")),
      p: canAlways && (() => always("project")),
      n: refuse,
      e: canAlways && edit,
    }
    const action = actions[event.key]
    if (!action) return
    event.preventDefault()
    event.stopPropagation()
    void action()
  }

  return (
    <section class="card permission" aria-label={`Permission: ${card.title}`} onKeyDown={onKeyDown}>
      <header>
        <Icon name="shield" />
        <h2>
          <span class="muted">
            {card.subagent === undefined ? "Permission" : `Subagent ${card.subagent} asks`} ·{" "}
          </span>
          {card.title}
        </h2>
      </header>
      {card.hasInvisibleCharacters && (
        <p class="problem">
          <Icon name="warning" /> This request contains invisible characters, shown as &lt;U+…&gt;.
        </p>
      )}
      {card.diff === undefined ? (
        <pre class="command" tabIndex={0} role="region" aria-label="Subject">
          {card.subject.join("\n")}
        </pre>
      ) : (
        <DiffView diff={card.diff} worktree={worktree} />
      )}
      {card.details.length > 0 && (
        <dl class="facts">
          {card.details.map(({ name, text }) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
      )}
      {canAlways && (
        <div class="rules">
          <p class="muted small">
            “Session” and “Project” add {card.rules.length === 1 ? "this rule" : "these rules"}:
          </p>
          {card.rules.map(({ permission, pattern }, index) => (
            <div class="rule" key={`${permission} ${pattern}`}>
              <code>allow {permission}:</code>
              {patterns ? (
                <input
                  ref={index === 0 ? firstRule : undefined}
                  aria-label={`Pattern for ${permission}`}
                  value={patterns[index]}
                  spellcheck={false}
                  onInput={({ currentTarget }) => setPatterns(patterns.with(index, currentTarget.value))}
                  onKeyDown={(event) => {
                    if (event.key === "Escape") {
                      setPatterns(undefined)
                      reject.current?.focus()
                    }
                  }}
                />
              ) : (
                <code>{pattern}</code>
              )}
            </div>
          ))}
        </div>
      )}
      {card.onlyOnce.length > 0 && (
        <p class="muted small">This request can be allowed only once: {card.onlyOnce.join("; ")}.</p>
      )}
      <input
        class="reason"
        aria-label="Reason for the agent if you reject"
        placeholder="Reason, if you reject (optional)"
        value={reason}
        onInput={({ currentTarget }) => setReason(currentTarget.value)}
        onKeyDown={(event) => event.key === "Enter" && !event.isComposing && reason.trim() !== "" && refuse()}
      />
      <div class="actions">
        <button type="button" class="primary" disabled={isBusy} onClick={once}>
          Allow once <kbd>y</kbd>
        </button>
        {canAlways && (
          <>
            <button type="button" disabled={isBusy} onClick={() => always("session")}>
              Session <kbd>s</kbd>
            </button>
            <button type="button" disabled={isBusy} onClick={() => always("project")}>
              Project <kbd>p</kbd>
            </button>
            {!patterns && (
              <button type="button" class="quiet" onClick={edit}>
                Edit rule <kbd>e</kbd>
              </button>
            )}
          </>
        )}
        <button type="button" class="reject" ref={reject} disabled={isBusy} onClick={refuse}>
          Reject <kbd>n</kbd>
        </button>
      </div>
    </section>
  )
}
