import type { WriteStream } from "node:tty"
import type { EventOf, RunStatus, TackleEvent } from "../../event/events.ts"
import { modelName } from "../../model/model.ts"
import type { Part, RetryPart, ToolPart } from "../../schema/part.ts"
import type { Session } from "../../schema/session.ts"
import { counted } from "../../util/words.ts"
import { usageWords } from "../../view/usage.ts"
import { columns, oneLine, visible, wrapped } from "../../view/visible.ts"
import type { Output } from "../process/stdout.ts"
import { asTyped } from "../process/typed-command.ts"
import { allowHint } from "./allow-hint.ts"
import { callBody, callLine, progressLines, startLine } from "./call.ts"
import type { Activity } from "./live-region.ts"
import { loadMarkdown, type RenderMarkdown } from "./markdown.ts"
import { createPage } from "./page.ts"
import { isShownWhole } from "./request.ts"
import { style } from "./style.ts"
import { createChildren, type View } from "./view.ts"

/** Options for {@link createTextView}. */
export interface TextViewOptions {
  output: Output
  notes: WriteStream
  worktree: string
  /** Whether to show only one line per call, without output, diffs or progress. */
  quiet: boolean
  /** Whether the user enters the next prompt here. If so, the view does not say how to continue the session. */
  takesPrompts?: boolean
  /** Flags that select the session's server or database, as text. Undefined if no flags are needed. */
  serverFlags?: string
}

const waiting = "waiting for the model"

/** Delay in ms before the view shows that the engine is starting. */
const startMs = 200

/** Minimum time in ms between two reports of a call's progress in a log. */
const progressMs = 1_000

interface RunningCall {
  part: ToolPart
  since: number
  /** Latest report in a log, and its time. */
  reported?: string
  reportedAt?: number
}

/** Maximum number of running calls that are shown at once. */
const maxRunning = 6

/**
 * Creates a view for users. The model's text goes to `output` and everything about calls to `notes`, so that a pipe
 * receives only the answer. In a terminal, the view shows text as Markdown while it arrives, and shows the running
 * calls below the text. Without a terminal, the view writes a line when a call starts, and writes text only when it is
 * complete, because the text of an interrupted request is sent again.
 */
export function createTextView(options: TextViewOptions): View {
  const { output, worktree, quiet } = options
  const page = createPage(options)
  const children = createChildren()
  const running = new Map<string, RunningCall>()
  /** Number of characters shown so far, keyed by part id. */
  const shown = new Map<string, number>()
  const reasoning = new Set<string>()
  /** Ids of the user's messages. */
  const own = new Set<string>()
  /** Calls whose diff is shown in a permission request, keyed by the request's id. */
  const asked = new Map<string, string>()
  /** Calls whose diff the user saw before answering a request. */
  const seen = new Set<string>()
  /** Session that has not been shown yet. */
  let begun: Session | undefined
  let model: Activity | undefined
  let render: RenderMarkdown | undefined
  let loading: Promise<void> | undefined
  /** Events held back during a question or while the renderer is being loaded. */
  const held: TackleEvent[] = []
  let holds = 0
  /** False if the database no longer exists, so that the session cannot be continued. */
  let isStored = true

  /** Sets the model's activity. Its duration starts again if the activity changes or `restart` is set. */
  function modelDoes(text: string | undefined, { restart = false, delayMs = 0 } = {}): void {
    if (text === undefined) model = undefined
    else if (restart || model?.text !== text) model = { text, since: page.clock(), delayMs }
    refresh()
  }

  function refresh(): void {
    const calls = [...running.values()]
    const activities = calls.slice(0, maxRunning).map(({ part, since }) => ({
      text: startLine(part, worktree, page.width()).replace(/^· /, ""),
      since,
      details: quiet ? [] : progressLines(part, { rows: calls.length > 1 ? 1 : 5 }),
    }))
    const [first] = calls.slice(maxRunning)
    if (first)
      activities.push({
        text: counted(calls.length - maxRunning, "more call"),
        since: first.since,
        details: [],
      })
    page.setActivities(activities.length > 0 ? activities : model ? [model] : [])
  }

  function noteAll(lines: readonly string[], paint: (text: string) => string): void {
    for (const line of lines) page.note([paint(line)])
  }

  function showPart(part: Part): void {
    switch (part.type) {
      case "text":
        showText(part.id, part.text, part.time?.end !== undefined)
        return
      case "reasoning":
        reasoning.add(part.id)
        modelDoes(part.time.end === undefined ? "thinking" : waiting)
        return
      case "tool":
        showCall(part)
        return
      case "step-start":
      case "step-finish":
        modelDoes(waiting)
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
    if (ended) page.endText()
  }

  function say(text: string): void {
    if (text === "") return
    // The text itself shows that the model is working, unless it stalls.
    if (output.isTTY) modelDoes("waiting for the rest of the answer", { restart: true, delayMs: 1_000 })
    page.say(text, render)
  }

  function showCall(part: ToolPart): void {
    const { status } = part.state
    if (status === "pending") modelDoes(`writing a call to ${visible(part.tool)}`)
    else if (status === "running") {
      if (!page.live && !quiet) noteProgress(part)
      running.set(part.id, { since: page.clock(), ...running.get(part.id), part })
    } else {
      running.delete(part.id)
      const body = quiet || seen.delete(callKey(part)) ? [] : callBody(part, page.width())
      page.note([...callLine(part, worktree, page.width()), ...body])
      if (running.size === 0) modelDoes(waiting, { restart: true })
    }
    refresh()
  }

  /** Reports the start of a call, and each new title or progress. */
  function noteProgress(part: ToolPart): void {
    const call = running.get(part.id)
    if (!call) {
      page.note([startLine(part, worktree, page.width())])
      return
    }
    const text = progressLines(part, { rows: 0 }).join(" ")
    if (text === "" || text === call.reported || page.clock() < (call.reportedAt ?? -progressMs) + progressMs)
      return
    page.note([oneLine(`· ${part.tool}: ${text}`, page.width())])
    Object.assign(call, { reported: text, reportedAt: page.clock() })
  }

  function show(event: TackleEvent): void {
    if (output.isTTY && !render && isText(event)) load()
    if (holds > 0) held.push(event)
    else showNow(event)
  }

  /** Loads the Markdown renderer and holds back all events until the renderer is loaded. */
  function load(): void {
    if (loading) return
    const release = hold()
    loading = loadMarkdown().then((loaded) => {
      render = loaded
      release()
    })
  }

  /** Holds events back until the returned function is called. */
  function hold(): () => void {
    holds++
    return () => {
      holds--
      if (holds === 0) for (const event of held.splice(0)) show(event)
    }
  }

  /** Returns true if the event contains text from a model. */
  function isText(event: TackleEvent): boolean {
    if (event.type === "part.delta") return event.field === "text"
    return event.type === "part.updated" && event.part.type === "text" && !own.has(event.part.messageID)
  }

  function showNow(event: TackleEvent): void {
    const agent = children.agentOf(event)
    if (agent !== undefined) showChild(event, agent)
    else showOwn(event)
  }

  /** Shows each call by a subagent when the call ends. The subagent's text goes only to the agent that started it. */
  function showChild(event: TackleEvent, agent: string): void {
    noteAsked(event)
    if (event.type !== "part.updated" || event.part.type !== "tool") return
    const { part } = event
    if (part.state.status !== "completed" && part.state.status !== "error") return
    const prefix = `  ${visible(agent)} › `
    const width = Math.max(20, page.width() - columns(prefix))
    const body = quiet || seen.delete(callKey(part)) ? [] : callBody(part, width)
    const [first = "", ...more] = callLine(part, worktree, width)
    page.note([style.dim(prefix) + first, ...[...more, ...body].map((line) => `  ${line}`)])
  }

  /**
   * Shows a session once, with the agent and model of its first prompt. A command can change the agent and the model.
   */
  function introduce(...workers: string[]): void {
    if (!begun) return
    page.note([style.dim([`session ${begun.id}`, ...workers.map(visible)].join(" · "))])
    begun = undefined
  }

  /** Notes which diffs the user has seen. */
  function noteAsked(event: TackleEvent): void {
    if (event.type === "permission.asked" && event.request.tool && isShownWhole(event.request)) {
      if (typeof event.request.metadata.diff === "string")
        asked.set(event.request.id, callKey(event.request.tool))
    } else if (event.type === "permission.replied" && event.source === "user") {
      seen.add(asked.get(event.requestID) ?? "")
    }
  }

  function showOwn(event: TackleEvent): void {
    noteAsked(event)
    switch (event.type) {
      case "session.created":
        begun = event.session
        return
      case "input.updated":
        if (event.input.state === "promoted")
          page.note([style.dim(oneLine(`› ${event.input.text}`, page.width()))])
        return
      case "part.updated":
        // The user's own text is not repeated, but the user's message may contain calls made by a command.
        if (event.part.type === "tool" || !own.has(event.part.messageID)) showPart(event.part)
        return
      case "part.removed":
        page.endText()
        return
      case "message.created":
        if (event.message.role === "user") {
          own.add(event.message.id)
          introduce(event.message.agent, modelName(event.message.model))
        }
        modelDoes(waiting)
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
        isStored = event.error.name !== "store.removed"
        if (begun) introduce(begun.agent)
        noteAll(wrapped(`✗ ${event.error.message}`, page.proseWidth()), style.red)
        return
      case "run.completed":
        page.endText()
        modelDoes(undefined)
        if (begun) introduce(begun.agent)
        page.note(summary(event, isStored && !options.takesPrompts ? options : undefined).map(style.dim))
        return
    }
  }

  if (!quiet) modelDoes("starting", { delayMs: startMs })
  return {
    show,
    pause() {
      page.endText()
      const resume = page.pause()
      const release = hold()
      return () => {
        resume()
        release()
      }
    },
    continues(session) {
      page.note([style.dim(oneLine(`continuing session ${session.id} · ${session.title}`, page.width()))])
    },
    exited: () => {},
    async end() {
      await loading
      page.end()
    },
  }
}

/** Identifies a call in all sessions of a run. */
function callKey({ messageID, callID }: { messageID: string; callID: string }): string {
  return `${messageID} ${callID}`
}

/** Describes a retry of a request to the model. */
function retryText({ attempt, delayMs, error }: RetryPart): string {
  if (delayMs === 0) return `↻ ${error}`
  return `↻ attempt ${attempt} failed, retrying in ${Math.ceil(delayMs / 1000)} s: ${error}`
}

/** Returns the warning that the model's context is almost full. */
function fillingText({ used, room }: EventOf<"context.filling">): string {
  const share = `${Math.round((used / room) * 100)}% of the model's context is used (${used} of ${room} tokens)`
  return `! ${share}: a summary will replace older messages when the context is full`
}

const runWords: Record<RunStatus, string> = {
  completed: "done",
  incomplete: "the answer is incomplete",
  failed: "failed",
  limit: "stopped by a limit",
  interrupted: "interrupted",
}

/** Describes how a run ended, and its usage. With `hint`, also says how to continue the session. */
function summary(event: EventOf<"run.completed">, hint?: Pick<TextViewOptions, "serverFlags">): string[] {
  const { status, usage, refused, durationMs, sessionID } = event
  const words = [
    runWords[status],
    `${(durationMs / 1000).toFixed(1)} s`,
    ...usageWords(usage),
    ...(refused.length > 0 ? [`${refused.length} refused`] : []),
  ]
  const server = hint?.serverFlags === undefined ? "" : ` ${hint.serverFlags}`
  const rules = allowHint(refused.filter(({ by }) => by === "no-terminal"))
  return [
    words.join(" · "),
    ...(rules === undefined ? [] : [rules]),
    ...(hint ? [asTyped(`continue with: tackle run${server} -s ${sessionID} "…"`)] : []),
  ]
}
