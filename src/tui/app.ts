import { type Component, Editor, matchesKey } from "@earendil-works/pi-tui"
import type { SessionApi, TackleApi } from "../client/api.ts"
import type { Delivery } from "../schema/input.ts"
import { errorMessage } from "../util/errors.ts"
import { type FollowedSession, followSession } from "../view/follow-session.ts"
import type { SessionState } from "../view/session-state.ts"
import { oneLine, visible } from "../view/visible.ts"
import { createAttention } from "./attention.ts"
import { clip, wrap } from "./card.ts"
import { type Cards, createCards } from "./cards.ts"
import { type Conversation, createConversation } from "./conversation.ts"
import type { Screen } from "./screen.ts"
import { renderStatus } from "./status-line.ts"
import { editorTheme, type Theme } from "./theme.ts"

/** The agent and model for a session that has not been created yet. */
export interface SessionDefaults {
  agent?: string
  model?: string
}

/** Options of {@link createApp}. */
export interface AppOptions {
  api: TackleApi
  screen: Screen
  theme: Theme
  /** Session to continue. Undefined starts a new session with the first prompt. */
  session: SessionApi | undefined
  defaults: SessionDefaults
  /** Lines above an empty conversation. */
  welcome: readonly string[]
  /** Facts for the status line, such as the git branch. */
  facts: readonly string[]
  /** Called when the user leaves. */
  onLeave(): void
}

/** The terminal interface of one engine. */
export interface App {
  readonly session: SessionApi | undefined
  /** Shows a session. Undefined shows an empty conversation; the first prompt then creates a session. */
  open(session: SessionApi | undefined): Promise<void>
  /** Sends a text to the session. Creates the session if necessary. */
  send(text: string, delivery: Delivery): Promise<void>
  /** Shows a line above the editor until the next key. */
  notify(text: string): void
  close(): void
}

/** Time in milliseconds within which the user must press Ctrl+C again to leave. */
const leaveMs = 1_500

/** Creates the interface and shows it on the screen. */
export function createApp(options: AppOptions): App {
  const { api, screen, defaults } = options
  const { tui } = screen
  const theme = options.theme
  const conversation: Conversation = createConversation(theme)
  const editor = new Editor(tui, editorTheme(theme), { paddingX: 1 })
  let session: SessionApi | undefined
  let followed: FollowedSession | undefined
  let state: SessionState | undefined
  let notice: string | undefined
  let leaveBy = 0
  let startedAt = 0
  let ticking: ReturnType<typeof setInterval> | undefined

  const cards: Cards = createCards({
    api,
    theme: () => theme,
    rows: () => Math.max(6, tui.terminal.rows - 6),
    onFocusChange: focus,
    onEarlyKey: (data) => editor.handleInput(data),
    onProblem: notify,
    requestRender: () => tui.requestRender(),
  })

  screen.show({
    main: { render: renderMain, invalidate: () => conversation.invalidate() },
    bottom: [
      cards.component,
      lines(renderActivity),
      lines(renderQueue),
      lines(renderNotice),
      editor,
      lines(renderFooter),
    ],
  })
  focus()
  const attention = createAttention(tui)
  const stopListening = tui.addInputListener(handleKey)
  editor.onSubmit = (text) => void submit(text, "steer")

  function focus(): void {
    tui.setFocus(cards.active ?? editor)
  }

  function handleKey(data: string): { consume: boolean } | undefined {
    if (matchesKey(data, "ctrl+c")) return consume(cancel)
    notice = undefined
    if (matchesKey(data, "ctrl+o")) return consume(toggleDetails)
    if (cards.active) return undefined
    if (matchesKey(data, "ctrl+d") && editor.getText() === "") return consume(options.onLeave)
    if (matchesKey(data, "escape") && state?.isRunning && !editor.isShowingAutocomplete())
      return consume(interrupt)
    if (matchesKey(data, "tab") && state?.isRunning && editor.getText().trim() !== "")
      return consume(() => {
        const text = editor.getExpandedText()
        editor.setText("")
        void submit(text, "queue")
      })
    return undefined
  }

  function consume(action: () => void): { consume: true } {
    action()
    tui.requestRender()
    return { consume: true }
  }

  /**
   * Handles Ctrl+C. It clears the editor; if the editor is empty, it interrupts the run. Pressing it twice leaves the
   * interface.
   */
  function cancel(): void {
    const now = Date.now()
    if (now < leaveBy) {
      options.onLeave()
      return
    }
    leaveBy = now + leaveMs
    if (editor.getText() !== "") editor.setText("")
    else if (state?.isRunning) interrupt()
    notify("Press Ctrl+C again to leave.")
  }

  function interrupt(): void {
    if (!session) return
    session.interrupt().catch((error: unknown) => notify(errorMessage(error)))
  }

  function toggleDetails(): void {
    conversation.expanded = !conversation.expanded
  }

  function notify(text: string): void {
    notice = text
    tui.requestRender()
  }

  async function open(next: SessionApi | undefined): Promise<void> {
    followed?.close()
    followed = undefined
    session = next
    show(undefined)
    if (!next) return
    followed = await followSession({
      api,
      session: next,
      onChange: show,
      onEnd: (error) =>
        notify(
          error === undefined
            ? "The session was deleted."
            : `The session cannot be followed: ${errorMessage(error)}`,
        ),
    })
    show(followed.state)
  }

  function show(next: SessionState | undefined): void {
    if (next?.isRunning && !state?.isRunning) startedAt = Date.now()
    state = next
    conversation.setState(next)
    cards.update(next)
    attention.update(next)
    tick(next?.isRunning === true)
    tui.requestRender()
  }

  /** Updates the duration of a run once per second. No timer is active while the session is idle. */
  function tick(isRunning: boolean): void {
    if (isRunning) ticking ??= setInterval(() => tui.requestRender(), 1_000)
    else {
      clearInterval(ticking)
      ticking = undefined
    }
  }

  async function submit(text: string, delivery: Delivery): Promise<void> {
    if (text.trim() === "") return
    editor.addToHistory(text)
    try {
      await send(text, delivery)
    } catch (error) {
      // Puts the text back into the editor, so that it is not lost.
      if (editor.getText() === "") editor.setText(text)
      notify(errorMessage(error))
    }
  }

  async function send(text: string, delivery: Delivery): Promise<void> {
    if (!session) await open(await api.sessions.create(defaults))
    await session?.send(text, { delivery })
  }

  function renderMain(width: number): string[] {
    if (!state || state.messages.length === 0)
      return [...options.welcome.flatMap((line) => wrap(line, width)), ""]
    return conversation.render(width)
  }

  function renderActivity(width: number): string[] {
    if (state?.error && !state.isRunning)
      return [...wrap(theme.error(`✗ ${visible(state.error.message)}`), width)]
    if (state?.isRunning && !cards.active) {
      const seconds = Math.floor((Date.now() - startedAt) / 1_000)
      return [clip(`${theme.accent("●")} ${theme.dim(`working · ${seconds} s · esc interrupts`)}`, width)]
    }
    const { lastRun } = state ?? {}
    if (!lastRun || lastRun.status === "completed") return []
    const ends = {
      failed: "The run failed.",
      limit: "The run stopped at a limit.",
      interrupted: "Interrupted.",
    }
    return [clip(theme.warning(ends[lastRun.status]), width)]
  }

  function renderQueue(width: number): string[] {
    return (state?.inputs ?? []).map(({ text, delivery, problem }) => {
      const kind = delivery === "queue" ? "queued" : "next"
      const line = `${theme.accent("›")} ${theme.dim(`${kind}: ${oneLine(text, width)}`)}`
      return clip(problem === undefined ? line : `${line} ${theme.error(visible(problem))}`, width)
    })
  }

  function renderNotice(width: number): string[] {
    return notice === undefined ? [] : wrap(theme.warning(visible(notice)), width)
  }

  function renderFooter(width: number): string[] {
    const model = state?.session.model
    const facts = {
      agent: state?.session.agent ?? defaults.agent ?? "build",
      model: model ? `${model.providerID}/${model.modelID}` : (defaults.model ?? ""),
      more: options.facts,
      hint: state?.isRunning ? "enter steers · tab queues" : "",
    }
    return [renderStatus(state, facts, { width, theme })]
  }

  return {
    get session() {
      return session
    },
    open,
    send: submit,
    notify,
    close() {
      stopListening()
      followed?.close()
      cards.close()
      attention.close()
      clearInterval(ticking)
    },
  }
}

/** Returns a component that handles no input and caches no lines. */
function lines(render: (width: number) => string[]): Component {
  return { render, invalidate: () => {} }
}
