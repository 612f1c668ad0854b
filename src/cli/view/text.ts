import type { Writable } from "node:stream"
import type { WriteStream } from "node:tty"
import type { TackleEvent } from "../../event/events.ts"
import type { Part, ToolPart } from "../../schema/part.ts"
import { callLine, startLine } from "./call-line.ts"
import { createStatusLine } from "./status-line.ts"
import { style } from "./style.ts"
import type { View } from "./view.ts"
import { oneLine, visible } from "./visible.ts"

/**
 * A run for people. The model's words go to `output`, everything about its calls to `notes`, so that a pipe gets the
 * answer alone. At a terminal what is under way is one live line that vanishes; elsewhere each start is a line.
 */
export function createTextView(options: { output: Writable; notes: WriteStream; worktree: string }): View {
  const { output, notes, worktree } = options
  const live = notes.isTTY === true
  const width = () => notes.columns || 80
  const status = createStatusLine(notes)
  const running = new Map<string, ToolPart>()
  /** Text that was shown so far, by part. */
  const shown = new Map<string, number>()
  const reasoning = new Set<string>()
  let atLineStart = true

  function note(line: string): void {
    status.clear()
    if (!atLineStart) {
      output.write("\n")
      atLineStart = true
    }
    notes.write(`${line}\n`)
    status.draw()
  }

  function say(text: string): void {
    if (text === "") return
    status.clear()
    output.write(visible(text))
    atLineStart = text.endsWith("\n")
    if (atLineStart) status.draw()
  }

  function showPart(part: Part): void {
    switch (part.type) {
      case "text":
        showText(part.id, part.text, part.time?.end !== undefined)
        return
      case "reasoning":
        reasoning.add(part.id)
        status.set(part.time.end === undefined ? "thinking" : undefined)
        return
      case "tool":
        showCall(part)
        return
      case "step-start":
        status.set("waiting for the model")
        return
      case "step-finish":
        status.set(undefined)
        return
      case "retry":
        note(
          style.yellow(
            `↻ attempt ${part.attempt} failed, trying again in ${Math.ceil(part.delayMs / 1000)} s: ${oneLine(part.error, 200)}`,
          ),
        )
        return
    }
  }

  /** What was not shown as deltas. */
  function showText(id: string, text: string, ended: boolean): void {
    const from = shown.get(id) ?? 0
    shown.set(id, Math.max(from, text.length))
    say(text.slice(from))
    if (ended && !atLineStart) say("\n")
  }

  function showCall(part: ToolPart): void {
    const { status: state } = part.state
    if (state === "pending") {
      status.set(`writing a call of ${part.tool}`)
      return
    }
    if (state === "running") {
      const started = running.has(part.id)
      running.set(part.id, part)
      if (!live && !started) note(startLine(part, worktree, width()))
    } else {
      running.delete(part.id)
      for (const line of callLine(part, worktree, width())) note(line)
    }
    status.set(describeRunning())
  }

  function describeRunning(): string | undefined {
    const titles = [...running.values()].map((part) =>
      startLine(part, worktree, width() - 20).replace(/^· /, ""),
    )
    return titles.length > 1 ? `${titles.length} calls: ${titles.join(", ")}` : titles[0]
  }

  function show(event: TackleEvent): void {
    switch (event.type) {
      case "session.created":
        note(style.dim(`session ${event.session.id} · ${event.session.agent}`))
        return
      case "part.updated":
        // The person's own words need not be repeated to them.
        if (!own.has(event.part.messageID)) showPart(event.part)
        return
      case "message.created":
        if (event.message.role === "user") own.add(event.message.id)
        return
      case "part.delta":
        if (event.field !== "text" || reasoning.has(event.partID)) return
        shown.set(event.partID, (shown.get(event.partID) ?? 0) + event.delta.length)
        say(event.delta)
        return
      case "permission.replied":
        if (event.source === "auto" && event.reply === "reject")
          note(style.yellow("⊘ --auto does not answer this; it was refused"))
        return
      case "session.error":
        note(style.red(`✗ ${visible(event.error.message)}`))
        return
      case "run.completed":
        status.set(undefined)
        note(style.dim(summary(event)))
        return
    }
  }

  const own = new Set<string>()
  return {
    show,
    pause: () => status.pause(),
    end: () => status.clear(),
  }
}

function summary(event: Extract<TackleEvent, { type: "run.completed" }>): string {
  const { status, usage, refused, durationMs, sessionID } = event
  const words = [
    { completed: "done", failed: "failed", limit: "stopped by a limit", interrupted: "interrupted" }[status],
    `${(durationMs / 1000).toFixed(1)} s`,
    ...(usage.input + usage.output > 0 ? [`${usage.input + usage.cacheRead} + ${usage.output} tokens`] : []),
    ...(usage.cost > 0 ? [`$${usage.cost.toFixed(4)}`] : []),
    ...(refused.length > 0 ? [`${refused.length} refused`] : []),
  ]
  return `${words.join(" · ")} · go on with: tackle run -s ${sessionID} "…"`
}
