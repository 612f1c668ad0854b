import { type Component, type Focusable, Input, matchesKey } from "@earendil-works/pi-tui"
import type { PermissionReply, PermissionRequest } from "../schema/permission.ts"
import { showInvisible } from "../util/invisible.ts"
import { wildcardCovers } from "../util/wildcard.ts"
import { type Choice, createDecision, settleMs } from "../view/decision.ts"
import { type ReplyChoice, replyChoices } from "../view/reply-choices.ts"
import { createRequestCard } from "../view/request-card.ts"
import {
  clip,
  createEarlyKeys,
  createScrolledText,
  headLine,
  indented,
  keyHints,
  pasteStart,
  typedText,
  wrap,
} from "./card-parts.ts"
import { libraryKey } from "./keybindings.ts"
import type { Theme } from "./theme.ts"

/** Options for {@link createPermissionCard}. */
export interface PermissionCardOptions {
  request: PermissionRequest
  worktree: string
  theme: Theme
  /** Maximum height in lines. */
  rows(): number
  /** Called once, when the user decides. */
  onReply(reply: PermissionReply): void
  /**
   * Receives input that does not belong to the card: keys that are typed before the card accepts keys or after its
   * request has ended, and text that is pasted while the user is not writing a reason.
   */
  onEarlyKey(data: string): void
  requestRender(): void
  /** Formats a diff. Default: the diff's lines, colored. */
  renderDiff?(diff: string, width: number): string[]
}

/** A card that asks the user for a permission. */
export interface PermissionCard extends Component, Focusable {
  readonly requestID: string
  /** Sets the number of other requests that wait. */
  setWaiting(count: number): void
  /** Call this when another component used a key, so that the user may still be typing there. */
  delayKeys(): void
  /** Shows why the request no longer waits. After this, the card accepts no reply. */
  showEnd(text: string): void
  /** Stops the card's timers. */
  close(): void
}

/** The current step of the card. */
type Step =
  | { kind: "choose" }
  | { kind: "reason"; input: Input }
  | { kind: "pattern"; input: Input; index: number; patterns: string[]; error?: string }
  | { kind: "ended"; text: string }

/**
 * Creates a card. The user answers the request by typing the letter or digit of a choice, by typing its word and
 * pressing Enter, or by moving to it and pressing Enter. Escape rejects the request, or returns from a text field to
 * the choices.
 */
export function createPermissionCard(options: PermissionCardOptions): PermissionCard {
  const { request, worktree, theme, requestRender } = options
  const card = createRequestCard(request, worktree)
  const choices = replyChoices({ always: card.rules.length > 0, worktree }).map(withHint)
  const decision = createDecision<ReplyChoice>(choices, "reject")
  const scrolled = createScrolledText()
  const early = createEarlyKeys({ onEarlyKey: options.onEarlyKey, onOpen: requestRender })
  let step: Step = { kind: "choose" }
  let waiting = 0
  let isFocused = false
  let settling: ReturnType<typeof setTimeout> | undefined

  function finish(reply: PermissionReply): void {
    close()
    step = { kind: "ended", text: reply.reply === "reject" ? "Rejected." : "Allowed." }
    options.onReply(reply)
  }

  function select(choice: Choice<ReplyChoice> | undefined): void {
    if (choice?.value === "once") finish({ reply: "once" })
    else if (choice?.value === "session") finish({ reply: "always", scope: "session" })
    else if (choice?.value === "project") editPattern(0, [])
    else if (choice?.value === "reject") finish({ reply: "reject" })
    else if (choice?.value === "feedback") askReason()
  }

  function askReason(): void {
    const input = new Input()
    input.onSubmit = (text) =>
      finish(text.trim() === "" ? { reply: "reject" } : { reply: "reject", message: text.trim() })
    input.onEscape = choose
    step = { kind: "reason", input }
  }

  /**
   * Asks for the rules for a project grant, one after another. The user can make a rule narrower, or clear it to skip
   * it.
   */
  function editPattern(index: number, patterns: string[]): void {
    const offered = card.rules[index]
    if (!offered) {
      if (patterns.length === 0) choose()
      else finish({ reply: "always", scope: "project", patterns })
      return
    }
    const input = new Input()
    input.setValue(showInvisible(offered.pattern))
    // Puts the cursor at the end, because most users shorten the pattern there.
    input.handleInput("\u0005")
    input.onSubmit = (text) => {
      const pattern = text.trim()
      if (pattern === "") editPattern(index + 1, patterns)
      else if (wildcardCovers(offered.pattern, pattern)) editPattern(index + 1, [...patterns, pattern])
      else
        step = {
          kind: "pattern",
          input,
          index,
          patterns,
          error: `must not allow more than ${showInvisible(offered.pattern)}`,
        }
    }
    input.onEscape = choose
    step = { kind: "pattern", input, index, patterns }
  }

  function choose(): void {
    decision.type("")
    step = { kind: "choose" }
  }

  function type(text: string): void {
    decision.type(text)
    const { named, typed } = decision
    if (named === undefined || typed.length !== 1) return
    // This choice needs no delay, because it cannot allow anything, and the user may type the reason at once.
    if (choices[named]?.value === "feedback") {
      askReason()
      return
    }
    settling = setTimeout(() => {
      if (step.kind !== "choose") return
      select(choices[named])
      requestRender()
    }, settleMs)
  }

  function pressChoice(data: string): void {
    const text = typedText(data)
    if (matchesKey(data, "escape") || matchesKey(data, "ctrl+d")) finish({ reply: "reject" })
    else if (matchesKey(data, "enter")) select(decision.confirm())
    else if (matchesKey(data, "up")) decision.move(-1)
    else if (matchesKey(data, "down")) decision.move(1)
    else if (matchesKey(data, "backspace")) type(decision.typed.slice(0, -1))
    else if (text !== undefined) type(decision.typed + text)
  }

  function close(): void {
    early.close()
    clearTimeout(settling)
  }

  function body(width: number): string[] {
    const lines = card.subject.flatMap((text) => indented(text, width))
    if (card.diff !== undefined)
      lines.push(...(options.renderDiff ?? plainDiff)(card.diff, width - 2).map((line) => `  ${line}`))
    lines.push("")
    for (const { name, text } of card.details)
      lines.push(...wrap(`${name}: ${text}`, width - 2).map((line) => `  ${theme.dim(line)}`))
    if (card.hasInvisibleCharacters)
      lines.push(
        ...indented("The request contains invisible characters, shown as <…>.", width).map(theme.warning),
      )
    if (card.rules.length > 0) {
      const rules = card.rules.map(({ permission, pattern }) => `${permission}: ${showInvisible(pattern)}`)
      lines.push(...indented(`"always" allows ${rules.join(", ")}`, width).map(theme.dim))
    } else if (card.onlyOnce.length > 0)
      lines.push(...indented(`"always" is not available: ${card.onlyOnce.join("; ")}`, width).map(theme.dim))
    while (lines.at(-1) === "") lines.pop()
    return lines
  }

  function plainDiff(diff: string, width: number): string[] {
    return diff
      .trimEnd()
      .split("\n")
      .flatMap((line) => {
        const paint = line.startsWith("+") ? theme.added : line.startsWith("-") ? theme.removed : theme.dim
        return wrap(line, width).map(paint)
      })
  }

  function foot(width: number): string[] {
    switch (step.kind) {
      case "ended":
        return [clip(`  ${theme.warning(step.text)}`, width)]
      case "reason":
        return [
          clip("  What should the agent do instead?", width),
          ...step.input.render(width),
          fieldHint("rejects with this reason", width),
        ]
      case "pattern": {
        const { permission = "" } = card.rules[step.index] ?? {}
        const count = card.rules.length > 1 ? ` (${step.index + 1} of ${card.rules.length})` : ""
        return [
          clip(`  Allow ${permission} in this project${count}. You can make the pattern narrower:`, width),
          ...step.input.render(width),
          ...(step.error === undefined ? [] : wrap(`  The pattern ${step.error}`, width).map(theme.error)),
          fieldHint("allows, or skips if empty", width),
        ]
      }
      case "choose":
        return [
          ...(isLow()
            ? shortChoices(width)
            : choices.map((choice, index) => choiceLine(choice, index, width))),
          instruction(width),
        ]
    }
  }

  /** Returns the line with the keys for a text field. */
  function fieldHint(effect: string, width: number): string {
    const hints = keyHints([
      [libraryKey("tui.input.submit"), effect],
      [libraryKey("tui.select.cancel"), "goes back"],
    ])
    return clip(theme.dim(`  ${hints}`), width)
  }

  function isLow(): boolean {
    return options.rows() < minRows
  }

  /** Returns the choices on as few lines as possible. */
  function shortChoices(width: number): string[] {
    const lines: string[] = []
    let columns = width
    for (const [index, { key, value }] of choices.entries()) {
      const isFocus = index === decision.focus
      const text = `${isFocus ? "❯" : " "} ${key} ${shortLabels[value]}`
      const shown = isFocus ? theme.bold(text) : theme.dim(text)
      const isNew = columns + 2 + text.length > width
      columns = isNew ? text.length : columns + 2 + text.length
      lines.push(isNew ? shown : `${lines.pop()}  ${shown}`)
    }
    return lines.map((line) => clip(line, width))
  }

  function choiceLine(
    { key, digit, label, hint }: Choice<ReplyChoice>,
    index: number,
    width: number,
  ): string {
    const text = clip(`${digit} ${key}  ${hint === undefined ? label : `${label} (${hint})`}`, width - 2)
    return index === decision.focus ? `${theme.accent("❯")} ${theme.bold(text)}` : `  ${theme.dim(text)}`
  }

  function instruction(width: number): string {
    const { typed, named } = decision
    if (!early.isOpen) return clip(theme.dim("  …"), width)
    if (typed.length < 2) return clip(theme.dim(width < 58 ? shortInstruction : longInstruction), width)
    return clip(theme.dim(`  ${typed}: ${named === undefined ? "not a choice" : "press Enter"}`), width)
  }

  return {
    requestID: request.id,
    get focused() {
      return isFocused
    },
    set focused(value) {
      isFocused = value
    },
    setWaiting(count) {
      waiting = count
    },
    delayKeys: early.restart,
    showEnd(text) {
      close()
      step = { kind: "ended", text }
    },
    close,
    handleInput(data) {
      if (step.kind === "ended") {
        options.onEarlyKey(data)
        return
      }
      // Once the user is writing a reason, pasted text belongs to it.
      const isPasteForReason = early.isOpen && step.kind === "reason" && data.includes(pasteStart)
      if (!isPasteForReason && !early.accepts(data)) return
      clearTimeout(settling)
      if (!scrolled.handleInput(data)) {
        if (step.kind === "choose") pressChoice(data)
        else step.input.handleInput(data)
      }
      requestRender()
    },
    handleMouse(event) {
      // Ignores clicks, because a click may only be meant to focus the window.
      if (event.type !== "wheel") return undefined
      scrolled.scrollBy(event.wheelDelta ?? 0)
      return { handled: true }
    },
    invalidate() {},
    render(width) {
      early.setDrawn()
      const asker = card.subagent === undefined ? "" : ` (the subagent ${card.subagent} asks)`
      const note = waiting > 0 ? `${waiting} more waiting` : ""
      if (step.kind === "reason" || step.kind === "pattern") step.input.focused = isFocused
      const bottom = foot(width)
      const gap = isLow() ? [] : [""]
      const room = Math.max(3, options.rows() - bottom.length - gap.length - 1)
      return [
        headLine({ title: `? ${card.title}${asker}`, note, width, theme }),
        ...scrolled.render(body(width), room, theme).map((line) => clip(line, width)),
        ...gap,
        ...bottom,
      ]
    },
  }
}

function withHint(choice: Choice<ReplyChoice>): Choice<ReplyChoice> {
  return choice.value === "project" ? { ...choice, hint: "shows the pattern first" } : choice
}

/**
 * Minimum height in lines at which a card shows one choice per line. In a smaller card, choices share lines, so that
 * the command or change stays visible.
 */
const minRows = 16

const shortLabels: Readonly<Record<ReplyChoice, string>> = {
  ...{ once: "yes", session: "session", project: "project", reject: "no", feedback: "no, reason" },
}

const longInstruction = "  Press a letter or digit, or ↑ ↓ and Enter. Esc rejects."
const shortInstruction = "  Press a letter or digit. Esc rejects."
