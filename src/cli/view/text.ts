import type { WriteStream } from "node:tty"
import type { EventOf, TackleEvent } from "../../event/events.ts"
import { modelName } from "../../model/model.ts"
import type { Part, RetryPart, ToolPart } from "../../schema/part.ts"
import type { Session } from "../../schema/session.ts"
import type { Output } from "../process/stdout.ts"
import { allowHint } from "./allow-hint.ts"
import { callLine, startLine } from "./call-line.ts"
import { createPage } from "./page.ts"
import type { Activity } from "./status-line.ts"
import { style } from "./style.ts"
import { usageWords } from "./usage.ts"
import { createChildren, type View } from "./view.ts"
import { columns, visible, wrapped } from "./visible.ts"

const waiting: Activity = { kind: "model", text: "waiting for the model" }
const thinking: Activity = { kind: "model", text: "thinking" }

/**
 * Creates a view for users. The model's text goes to `output` and everything about calls to `notes`, so that a pipe
 * receives only the answer. At a terminal, text streams and the current activity is a live line. Elsewhere, each call
 * start is a line, and text is written only when it is complete, because an interrupted request is repeated.
 */
export function createTextView(options: { output: Output; notes: WriteStream; worktree: string }): View {
  const { output, worktree } = options
  const page = createPage(options)
  const children = createChildren()
  const running = new Map<string, ToolPart>()
  /** Number of characters shown so far, by part. */
  const shown = new Map<string, number>()
  const reasoning = new Set<string>()
  /** Ids of the user's messages. */
  const own = new Set<string>()
  /** New session that has not been shown yet. */
  let begun: Session | undefined
  /** Events held back during a question. */
  let held: TackleEvent[] | undefined

  function noteAll(lines: readonly string[], paint: (text: string) => string): void {
    for (const line of lines) page.note(paint(line))
  }

  function say(text: string): void {
    if (text === "") return
    // The streamed text already shows that the model is working.
    if (output.isTTY) page.setActivity(runningCalls())
    page.say(text)
  }

  function showPart(part: Part): void {
    switch (part.type) {
      case "text":
        showText(part.id, part.text, part.time?.end !== undefined)
        return
      case "reasoning":
        reasoning.add(part.id)
        page.setActivity(part.time.end === undefined ? thinking : waiting)
        return
      case "tool":
        callFor(part)
        return
      case "step-start":
      case "step-finish":
        page.setActivity(runningCalls() ?? waiting)
        return
      case "retry":
        noteAll(wrapped(retryText(part), page.proseWidth(), 3), style.yellow)
        return
    }
  }

  /** Shows the text that was not shown as deltas. */
  function showText(id: string, text: string, ended: boolean): void {
    if (!output.isTTY && !ended) return
    const from = shown.get(id) ?? 0
    shown.set(id, Math.max(from, text.length))
    say(text.slice(from))
    if (ended) page.endLine()
  }

  function callFor(part: ToolPart): void {
    const { status: state } = part.state
    if (state === "pending") {
      page.setActivity({ kind: "model", text: `writing a call to ${part.tool}` })
      return
    }
    if (state === "running") {
      const started = running.has(part.id)
      running.set(part.id, part)
      if (!page.live && !started) page.note(startLine(part, worktree, page.width()))
    } else {
      running.delete(part.id)
      for (const line of callLine(part, worktree, page.width())) page.note(line)
    }
    page.setActivity(runningCalls() ?? waiting)
  }

  function runningCalls(): Activity | undefined {
    const titles = [...running.values()].map((part) =>
      startLine(part, worktree, page.width() - 20).replace(/^· /, ""),
    )
    const text = titles.length > 1 ? `${titles.length} calls: ${titles.join(", ")}` : titles[0]
    return text === undefined ? undefined : { kind: "calls", text }
  }

  function show(event: TackleEvent): void {
    if (held) held.push(event)
    else showNow(event)
  }

  function showNow(event: TackleEvent): void {
    const agent = children.agentOf(event)
    if (agent !== undefined) showChild(event, agent)
    else showOwn(event)
  }

  /** Shows each call of a subagent when it ends. The text of a subagent goes only to the agent that started it. */
  function showChild(event: TackleEvent, agent: string): void {
    if (event.type !== "part.updated" || event.part.type !== "tool") return
    const { status: state } = event.part.state
    if (state !== "completed" && state !== "error") return
    const prefix = `  ${visible(agent)} › `
    for (const line of callLine(event.part, worktree, page.width() - columns(prefix)))
      page.note(style.dim(prefix) + line)
  }

  /** Shows a new session once, with the agent and model of its first prompt. A command may change both. */
  function introduce(...workers: string[]): void {
    if (!begun) return
    page.note(style.dim([`session ${begun.id}`, ...workers.map(visible)].join(" · ")))
    begun = undefined
  }

  function showOwn(event: TackleEvent): void {
    switch (event.type) {
      case "session.created":
        begun = event.session
        return
      case "part.updated":
        // The user's own text is not repeated, but the user's message may contain calls made by a command.
        if (event.part.type === "tool" || !own.has(event.part.messageID)) showPart(event.part)
        return
      case "message.created":
        if (event.message.role === "user") {
          own.add(event.message.id)
          introduce(event.message.agent, modelName(event.message.model))
        }
        page.setActivity(runningCalls() ?? waiting)
        return
      case "part.delta":
        if (event.field !== "text" || reasoning.has(event.partID) || !output.isTTY) return
        shown.set(event.partID, (shown.get(event.partID) ?? 0) + event.delta.length)
        say(event.delta)
        return
      case "context.filling":
        noteAll(wrapped(fillingText(event), page.proseWidth()), style.yellow)
        return
      case "session.error":
        if (begun) introduce(begun.agent)
        noteAll(wrapped(`✗ ${event.error.message}`, page.proseWidth()), style.red)
        return
      case "run.completed":
        page.setActivity(undefined)
        if (begun) introduce(begun.agent)
        noteAll(summary(event), style.dim)
        return
    }
  }

  return {
    show,
    pause() {
      const resume = page.pause()
      page.endLine()
      held = []
      return () => {
        const events = held ?? []
        held = undefined
        resume()
        for (const event of events) showNow(event)
      }
    },
    end: () => page.end(),
  }
}

/** Describes a repeated request to the model. */
export function retryText({ attempt, delayMs, error }: RetryPart): string {
  return `↻ attempt ${attempt} failed, retrying in ${Math.ceil(delayMs / 1000)} s: ${error}`
}

/** Warns that the model's context is almost full. */
export function fillingText({ used, room }: EventOf<"context.filling">): string {
  const share = `${Math.round((used / room) * 100)} % of the model's context is used (${used} of ${room} tokens)`
  return `! ${share}: a summary replaces older messages when the context is full`
}

/**
 * Describes how a run ended, its usage, and how to continue. Reports an empty answer, because it would otherwise look
 * like a defect.
 */
export function summary(event: EventOf<"run.completed">): string[] {
  const { status, text, usage, refused, durationMs, sessionID } = event
  const words = [
    { completed: "done", failed: "failed", limit: "stopped by a limit", interrupted: "interrupted" }[status],
    `${(durationMs / 1000).toFixed(1)} s`,
    ...usageWords(usage),
    ...(refused.length > 0 ? [`${refused.length} refused`] : []),
  ]
  const hint = allowHint(refused.filter(({ by }) => by === "no-terminal"))
  return [
    ...(status === "completed" && text.trim() === "" ? ["the model ended without an answer"] : []),
    words.join(" · "),
    ...(hint === undefined ? [] : [hint]),
    `continue with: tackle run -s ${sessionID} "…"`,
  ]
}
