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
 * A run for people. The model's words go to `output`, everything about its calls to `notes`, so that a pipe gets the
 * answer alone: each text once it has ended, since one that breaks off is taken back and asked for anew. At a terminal
 * words are shown as they come, and what is under way is one live line that vanishes; elsewhere each start is a line.
 */
export function createTextView(options: { output: Output; notes: WriteStream; worktree: string }): View {
  const { output, worktree } = options
  const page = createPage(options)
  const children = createChildren()
  const running = new Map<string, ToolPart>()
  /** Text that was shown so far, by part. */
  const shown = new Map<string, number>()
  const reasoning = new Set<string>()
  /** The messages of the person. */
  const own = new Set<string>()
  /** A new session, until it was told of. */
  let begun: Session | undefined
  /** What happens while a question is on the screen. */
  let held: TackleEvent[] | undefined

  function noteAll(lines: readonly string[], paint: (text: string) => string): void {
    for (const line of lines) page.note(paint(line))
  }

  function say(text: string): void {
    if (text === "") return
    // The words themselves show that the model is at work; what else there may be under way are calls.
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

  /** What was not shown as deltas. */
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
      page.setActivity({ kind: "model", text: `writing a call of ${part.tool}` })
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

  /** Of a subagent the calls are shown as they end; its words go to the agent that asked it. */
  function showChild(event: TackleEvent, agent: string): void {
    if (event.type !== "part.updated" || event.part.type !== "tool") return
    const { status: state } = event.part.state
    if (state !== "completed" && state !== "error") return
    const prefix = `  ${visible(agent)} › `
    for (const line of callLine(event.part, worktree, page.width() - columns(prefix)))
      page.note(style.dim(prefix) + line)
  }

  /** Once: a new session with who works on its first prompt, which for a command may be others than its own. */
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
        // The person's own words need not be repeated to them; the calls of a command are in their message too.
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

/** That a request to the model is made again. */
export function retryText({ attempt, delayMs, error }: RetryPart): string {
  return `↻ attempt ${attempt} failed, trying again in ${Math.ceil(delayMs / 1000)} s: ${error}`
}

/** That the model's context will soon be full. */
export function fillingText({ used, room }: EventOf<"context.filling">): string {
  const share = `${Math.round((used / room) * 100)} % of the model's context is used (${used} of ${room} tokens)`
  return `! ${share}: older parts will be replaced by a summary when it is full`
}

/** How a run ended, what it took, and how to go on. An end without a word is told: it looks like a fault of ours. */
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
    `go on with: tackle run -s ${sessionID} "…"`,
  ]
}
