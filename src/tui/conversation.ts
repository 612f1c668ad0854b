import type { Component } from "@earendil-works/pi-tui"
import type { MessageWithParts } from "../schema/message.ts"
import type { Part, ToolPart } from "../schema/part.ts"
import type { SessionState } from "../view/session-state.ts"
import { visible } from "../view/visible.ts"
import { indented, wrap } from "./card.ts"
import { renderMarkdown } from "./markdown.ts"
import { createNotes, type Notes, renderNote } from "./notes.ts"
import type { Theme } from "./theme.ts"
import { type CallOptions, renderCall } from "./tool-card.ts"

/** The messages of a session. Only messages that changed are formatted again. */
export interface Conversation extends Component {
  /** Shows a state. Before the first prompt, pass undefined to show nothing. */
  setState(state: SessionState | undefined): void
  /** Whether the output of calls and the reasoning are shown completely. */
  expanded: boolean
  /** Calls and texts between the messages. */
  readonly notes: Notes
  setTheme(theme: Theme): void
}

/**
 * Maximum number of messages that are shown. If a session exceeds it, the interface no longer draws the older half.
 * These messages stay in the terminal's scrollback.
 */
const maxMessages = 400

/** Creates a conversation. */
export function createConversation(theme: Theme): Conversation {
  let state: SessionState | undefined
  let expanded = false
  let firstShown: string | undefined
  const notes = createNotes()
  /**
   * Lines of messages and parts. The cache needs no invalidation, because a message or part that changes becomes a
   * different object.
   */
  let cache = new WeakMap<object, { width: number; lines: string[] }>()

  function cached(key: object, width: number, format: () => string[]): string[] {
    const known = cache.get(key)
    if (known?.width === width) return known.lines
    const lines = format()
    cache.set(key, { width, lines })
    return lines
  }

  /** Returns the messages to show: all messages except those that are no longer drawn. */
  function shownMessages(): readonly MessageWithParts[] {
    const messages = state?.messages ?? []
    const start = Math.max(
      0,
      messages.findIndex(({ message }) => message.id === firstShown),
    )
    if (messages.length - start <= maxMessages) return messages.slice(start)
    const shown = messages.slice(-maxMessages / 2)
    firstShown = shown[0]?.message.id
    return shown
  }

  return {
    notes,
    setState(next) {
      if (next?.session.id !== state?.session.id) firstShown = undefined
      state = next
    },
    get expanded() {
      return expanded
    },
    set expanded(value) {
      expanded = value
      cache = new WeakMap()
    },
    setTheme(next) {
      theme = next
      cache = new WeakMap()
    },
    invalidate() {
      cache = new WeakMap()
    },
    render(width) {
      const options: CallOptions = {
        ...{ theme, expanded, subagents: state?.subagents ?? new Map() },
        worktree: state?.session.worktree ?? "",
      }
      return [
        ...renderNotes(undefined, width, options),
        ...shownMessages().flatMap((item) => [
          ...renderMessage(item, width, options),
          ...renderNotes(item.message.id, width, options),
        ]),
      ]
    },
  }

  function renderNotes(after: string | undefined, width: number, options: CallOptions): string[] {
    return notes.after(after).flatMap((note) => cached(note, width, () => renderNote(note, width, options)))
  }

  function renderMessage(item: MessageWithParts, width: number, options: CallOptions): string[] {
    const { message, parts } = item
    if (message.role === "user") return cached(item, width, () => renderUserMessage(parts, width, options))
    const lines = parts
      .filter((part) => part.type !== "tool" || part.parentCallID === undefined)
      .flatMap((part) => {
        // The card of a `task` call is not cached, because it shows calls of the subagent's session.
        if (part.type === "tool" && part.tool === "task") return renderCall(part, width, options)
        return cached(part, width, () => renderPart(part, width, options))
      })
    if (!message.error || message.error.name === "aborted") return lines
    return [...lines, ...wrap(options.theme.error(`✗ ${visible(message.error.message)}`), width), ""]
  }
}

function renderUserMessage(
  parts: readonly Part[],
  width: number,
  { theme, ...options }: CallOptions,
): string[] {
  const texts = parts.flatMap((part) => (part.type === "text" && !part.synthetic ? [part.text] : []))
  const files = parts.flatMap((part) => (part.type === "file" ? [part.filename ?? part.mime] : []))
  const lines = wrap(visible(texts.join("\n").trim()), width - 2).map((line, index) =>
    theme.user(`${index === 0 ? "›" : " "} ${line}`),
  )
  const calls = parts.filter((part): part is ToolPart => part.type === "tool")
  return [
    ...(texts.length > 0 ? lines : []),
    ...files.flatMap((file) => indented(theme.dim(`+ ${visible(file)}`), width)),
    "",
    ...calls.flatMap((call) => renderCall(call, width, { theme, ...options })),
  ]
}

function renderPart(part: Part, width: number, options: CallOptions): string[] {
  const { theme, expanded } = options
  switch (part.type) {
    case "text":
      return part.text.trim() === "" ? [] : [...renderMarkdown(part.text, width, theme), ""]
    case "reasoning":
      return renderReasoning(part.text, width, { theme, expanded })
    case "tool":
      return renderCall(part, width, options)
    case "retry": {
      const seconds = Math.ceil(part.delayMs / 1000)
      const text = `↻ attempt ${part.attempt} failed, retrying in ${seconds} s: ${visible(part.error)}`
      return [...wrap(theme.warning(text), width), ""]
    }
    case "compaction":
      return [...wrap(theme.dim("── older messages were replaced by a summary for the model ──"), width), ""]
    default:
      return []
  }
}

/** Shows the first line of reasoning, or all of it if the view is expanded. */
function renderReasoning(
  text: string,
  width: number,
  { theme, expanded }: { theme: Theme; expanded: boolean },
): string[] {
  const plain = visible(text).trim()
  if (plain === "") return []
  if (expanded) return [...indented(theme.dim(plain), width), ""]
  const [first = ""] = plain.split("\n")
  const [line = ""] = wrap(`∴ ${first.replaceAll(/[*#`]/g, "")}`, width - 2)
  return [theme.dim(theme.italic(line)), ""]
}
