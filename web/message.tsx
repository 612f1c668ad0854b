import { useState } from "preact/hooks"
import type { MessageWithParts } from "../src/schema/message.ts"
import type { Part, PatchPart, ReasoningPart, ToolPart } from "../src/schema/part.ts"
import { displayPath } from "../src/view/display-path.ts"
import { isImage } from "./attachments.tsx"
import { Icon, Spinner } from "./icons.tsx"
import { Markdown } from "./markdown.tsx"
import { memo } from "./memo.ts"
import { forkAt } from "./session-actions.ts"
import { ToolCard } from "./tool-card.tsx"

/** A message with its parts. */
export const Message = memo(({ item, worktree }: { item: MessageWithParts; worktree: string }) => {
  const { message, parts } = item
  if (message.role === "user") return <UserMessage item={item} worktree={worktree} />
  const isEmpty = message.time.completed === undefined && !parts.some(isShown)
  return (
    <article id={message.id} class="message answer" aria-label="Agent">
      {parts.map((part) => (
        <PartView key={part.id} part={part} parts={parts} worktree={worktree} />
      ))}
      {isEmpty && (
        <p class="thinking">
          <Spinner /> Working…
        </p>
      )}
      {message.error && message.error.name !== "aborted" && (
        <p class="problem">
          <Icon name="error" /> {message.error.message}
        </p>
      )}
      {message.error?.name === "aborted" && <p class="muted small">Stopped.</p>}
    </article>
  )
})

function isShown({ type }: Part): boolean {
  return type !== "step-start"
}

function UserMessage({ item: { message, parts }, worktree }: { item: MessageWithParts; worktree: string }) {
  const texts = parts.flatMap((part) => (part.type === "text" && !part.synthetic ? part.text : []))
  const others = parts.filter(({ type }) => type !== "text")
  return (
    <article id={message.id} class="message question" aria-label="You">
      {texts.length > 0 && (
        <div class="bubble">
          <div class="user-text">{texts.join("\n\n")}</div>
          <button
            type="button"
            class="quiet fork-here"
            title="Fork: continue from this turn in a new session"
            aria-label="Fork from this turn"
            onClick={() => forkAt(message.id)}
          >
            <Icon name="fork" />
          </button>
        </div>
      )}
      {others.map((part) => (
        <PartView key={part.id} part={part} parts={parts} worktree={worktree} />
      ))}
    </article>
  )
}

interface PartProps {
  part: Part
  parts: readonly Part[]
  worktree: string
}

const noCalls: readonly ToolPart[] = []

function PartView({ part, parts, worktree }: PartProps) {
  switch (part.type) {
    case "text":
      return part.synthetic ? null : <Markdown text={part.text} />
    case "reasoning":
      return <Reasoning part={part} />
    case "tool": {
      if (part.parentCallID !== undefined) return null
      const nested = parts.filter(
        (other): other is ToolPart => other.type === "tool" && other.parentCallID === part.callID,
      )
      return <ToolCard part={part} nested={nested.length > 0 ? nested : noCalls} worktree={worktree} />
    }
    case "file":
      return isImage(part) ? (
        <img class="attachment" src={part.url} alt={part.filename ?? "Attached file"} />
      ) : (
        <p class="file">
          <Icon name="file" /> {displayPath(part.filename ?? part.url, worktree)}
        </p>
      )
    case "retry":
      return (
        <p class="muted small">
          {part.delayMs === 0
            ? part.error
            : `Attempt ${part.attempt} failed (${part.error}). The request is sent again.`}
        </p>
      )
    case "patch":
      return <ChangedFiles part={part} worktree={worktree} />
    case "compaction":
      return (
        <p class="divider">
          <span>Older messages were replaced by a summary</span>
        </p>
      )
    default:
      return null
  }
}

function Reasoning({ part }: { part: ReasoningPart }) {
  const [isOpen, setOpen] = useState(false)
  if (part.text.trim() === "") return null
  const { start, end } = part.time
  const seconds = end === undefined ? 0 : Math.round((end - start) / 1000)
  const label = end === undefined ? "Thinking…" : seconds > 0 ? `Thought for ${seconds} s` : "Thought"
  return (
    <div class="reasoning">
      <button type="button" class="reasoning-head" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {label}
        <span class="chevron">
          <Icon name="down" />
        </span>
      </button>
      {isOpen && <Markdown text={part.text} />}
    </div>
  )
}

/** The files that a turn changed. */
function ChangedFiles({ part: { files, undone }, worktree }: { part: PatchPart; worktree: string }) {
  if (files.length === 0) return null
  const names = files.map(({ path }) => displayPath(path, worktree))
  return (
    <p class={`changed ${undone ? "undone" : ""}`}>
      <Icon name={undone ? "undo" : "edit"} />
      {undone ? "Undone: " : "Changed "}
      <span>{names.join(", ")}</span>
    </p>
  )
}
