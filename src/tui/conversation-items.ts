import type { MessageWithParts } from "../schema/message.ts"
import type { Part, ToolPart } from "../schema/part.ts"
import { counted } from "../util/words.ts"
import { visible } from "../view/visible.ts"
import { clip, expandHint, indented, wrap } from "./card-parts.ts"
import { renderFile } from "./image-view.ts"
import { renderMarkdown } from "./markdown.ts"
import { type Notes, renderNote } from "./notes.ts"
import type { Theme } from "./theme.ts"
import { type CallOptions, renderCall } from "./tool-card.ts"

/** Formatted lines for a part of the conversation. */
export interface ConversationItem {
  /** Identifies the item within the session. */
  key: string
  /** Id of the message that contains or precedes the item. Undefined before the first message. */
  messageID: string | undefined
  lines: readonly string[]
}

/**
 * Cached lines, keyed by message, part or note. A change needs no invalidation, because a changed message, part or note
 * is a new object.
 */
export type LineCache = WeakMap<object, { width: number; lines: string[] }>

/** Options for formatting items. */
export interface ItemOptions extends CallOptions {
  width: number
  cache: LineCache
}

function cached({ cache, width }: ItemOptions, key: object, format: () => string[]): string[] {
  const known = cache.get(key)
  if (known?.width === width) return known.lines
  const lines = format()
  cache.set(key, { width, lines })
  return lines
}

/** Formats the notes after a message. If `messageID` is undefined, formats the notes before the first message. */
export function itemsOfNotes(
  notes: Notes,
  messageID: string | undefined,
  options: ItemOptions,
): ConversationItem[] {
  return notes.after(messageID).map((note, index) => ({
    ...{ key: `${messageID} note ${index}`, messageID },
    lines: cached(options, note, () => renderNote(note, options.width, options)),
  }))
}

/** Formats a message: one item for a prompt, or one item for each part of an answer, followed by its error, if any. */
export function itemsOfMessage(item: MessageWithParts, options: ItemOptions): ConversationItem[] {
  const { message, parts } = item
  const { id: messageID } = message
  const { width } = options
  if (message.role === "user") {
    const lines = cached(options, item, () => renderUserMessage(parts, width, options))
    return [{ key: messageID, messageID, lines }]
  }
  const items = parts
    .filter((part) => part.type !== "tool" || part.parentCallID === undefined)
    .map((part) => ({
      ...{ key: part.id, messageID },
      // The card of a `task` call is not cached, because it shows calls of the subagent's session.
      lines:
        part.type === "tool" && part.tool === "task"
          ? renderCall(part, width, options)
          : cached(options, part, () => renderPart(part, width, options)),
    }))
  if (!message.error) return items
  const { theme } = options
  const text = visible(message.error.message)
  const isAborted = message.error.name === "aborted"
  const lines = [...wrap(isAborted ? theme.warning(`⊘ ${text}`) : theme.error(`✗ ${text}`), width), ""]
  return [...items, { key: `${messageID} error`, messageID, lines }]
}

/** Maximum number of lines shown of a prompt that is not expanded, because pasted text may be long. */
const maxPromptLines = 20

function renderUserMessage(
  parts: readonly Part[],
  width: number,
  { theme, ...options }: CallOptions,
): string[] {
  const texts = parts.flatMap((part) => (part.type === "text" && !part.synthetic ? [part.text] : []))
  const files = parts.filter((part) => part.type === "file")
  const lines = wrap(visible(texts.join("\n").trim()), width - 2)
  const shown =
    options.expanded || lines.length <= maxPromptLines ? lines : lines.slice(0, maxPromptLines - 1)
  const hidden = lines.length - shown.length
  const calls = parts.filter((part): part is ToolPart => part.type === "tool")
  return [
    ...(texts.length > 0 ? shown : []).map((line, index) => theme.user(`${index === 0 ? "›" : " "} ${line}`)),
    ...(hidden > 0
      ? [clip(theme.dim(`  … ${counted(hidden, "more line")}${expandHint(options)}`), width)]
      : []),
    ...files.flatMap((file) => renderFile(file, width, theme)),
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
      const failed = part.delayMs === 0 ? "" : `attempt ${part.attempt} failed, retrying in ${seconds} s: `
      const text = `↻ ${failed}${visible(part.error)}`
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
