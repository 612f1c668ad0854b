import type { Component } from "@earendil-works/pi-tui"
import type { SessionApi, TackleApi } from "../client/api.ts"
import type { MessageWithParts } from "../schema/message.ts"
import { errorMessage } from "../util/errors.ts"
import { type FollowedSession, followSession } from "../view/follow-session.ts"
import type { SessionState } from "../view/session-state.ts"
import { durationText } from "../view/usage.ts"
import { visible } from "../view/visible.ts"
import { createWorkTimer } from "../view/work-timer.ts"
import { createAttention } from "./attention.ts"
import { clip, keyHints, wrap } from "./card-parts.ts"
import { loadHighlighter, needsHighlighter, onHighlighter } from "./code.ts"
import { type Conversation, createConversation } from "./conversation.ts"
import type { InputHistory } from "./history.ts"
import { createInputArea, type InputArea } from "./input-area.ts"
import { type Keys, libraryKey } from "./keybindings.ts"
import { forgetBlocks } from "./markdown.ts"
import type { WrittenInput } from "./prompt-editor.ts"
import type { Screen } from "./screen.ts"
import { createStatusLine, type StatusSource } from "./status-line.ts"
import { builtInTheme, changeTheme, colorDepth, type Theme } from "./theme.ts"
import type { Themes } from "./theme-file.ts"
import { renderTodos } from "./todo-panel.ts"
import { type Cards, createCards } from "./waiting-cards.ts"

/** The agent and model for a session that has not been created yet. */
export interface SessionDefaults {
  agent?: string
  model?: string
}

/** Options for {@link createApp}. */
export interface AppOptions {
  api: TackleApi
  screen: Screen
  theme: Theme
  keys: Keys
  history: InputHistory
  env: Readonly<Record<string, string | undefined>>
  themes: Themes
  /** Session to continue. Undefined starts a new session with the first prompt. */
  session: SessionApi | undefined
  defaults: SessionDefaults
  /** Whether the engine runs on a server. Default: false. */
  isRemote?: boolean
  /** Lines to show above an empty conversation. */
  welcome: readonly string[]
  /** Settings for the status line. */
  status: StatusSource
  /** Initial input in the editor. */
  draft?: WrittenInput
  /** Called when the user quits, or switches between the scrollback and the alternate screen. */
  onLeave(reason: LeaveReason): void
}

/** Reason why the interface must close. `screen` means that the interface opens again in the other screen mode. */
export type LeaveReason = "leave" | "screen"

/** The terminal interface of one engine. */
export interface App {
  readonly session: SessionApi | undefined
  /** Shows a session. Undefined shows an empty conversation; the first prompt then creates a session. */
  open(session: SessionApi | undefined): Promise<void>
  /** Sends text to the session, or runs the command in the text. Creates a session if none is open. */
  send(text: string): Promise<void>
  /** Shows a message above the editor until the user presses a key. */
  notify(text: string): void
  /** Shows text from a tool, or a warning, in the conversation. */
  addNote(text: string): void
  /** Switches to the built-in theme for the given background. */
  setBackground(background: "dark" | "light"): void
  /** Removes the input from the editor and returns it. */
  draft(): WrittenInput
  close(): void
}

/** Time in milliseconds within which the user must press the `clear` key again to quit. */
const leaveMs = 1_500

/**
 * Maximum time in milliseconds between a change to the session and the next frame. Changes cause at most about 30
 * frames per second.
 */
const frameMs = 33

/** Minimum duration in milliseconds at which the duration of a completed run is shown. */
const minDoneMs = 10_000

/** Minimum number of screen rows at which an empty editor is shown below a card. */
const minEditorRows = 18

/** Minimum number of screen rows at which the to-do list can have several lines. */
const minTodoRows = 20

/**
 * Number of messages in memory above which the oldest messages that are not drawn are dropped. They are loaded again
 * when the user asks for them.
 */
const maxMessages = 400

/** Creates the interface and shows it on the screen. */
export function createApp(options: AppOptions): App {
  const { api, screen, keys } = options
  const defaults = { ...options.defaults }
  const { tui } = screen
  const theme = options.theme
  const conversation: Conversation = createConversation(theme, {
    rows: () => tui.terminal.rows,
    linesAbove: () => screen.linesAbove,
    olderKey: keys.label("scrollUp"),
    expandKey: keys.label("expand"),
  })
  let session: SessionApi | undefined
  let followed: FollowedSession | undefined
  /** Number of calls to {@link open}. Only the latest call shows its session. */
  let openings = 0
  let state: SessionState | undefined
  let notice: string | undefined
  let leaveBy = 0
  const workTimer = createWorkTimer()
  let ticking: ReturnType<typeof setInterval> | undefined
  let frame: ReturnType<typeof setTimeout> | undefined
  let isLoadingOlder = false

  const cards: Cards = createCards({
    api,
    theme: () => theme,
    rows: () => Math.max(6, tui.terminal.rows - (hidesEditor() ? 2 : 6)),
    editor: () => input.editor,
    isCovered: () => tui.hasOverlay(),
    onFocusChange: focus,
    onEarlyKey: (data) => {
      if (!input.handleKey(data)) input.editor.handleInput?.(data)
    },
    onProblem: notify,
    requestRender: () => tui.requestRender(),
  })
  const input: InputArea = createInputArea({
    shell: {
      ...{ api, tui, theme, keys, defaults, open, notify, env: options.env },
      get session() {
        return session
      },
      get state() {
        return state
      },
      isRemote: options.isRemote ?? false,
      themes: options.themes,
      setTheme,
      toggleFullscreen: () => options.onLeave("screen"),
      leave: () => options.onLeave("leave"),
    },
    history: options.history,
    ensureSession,
    showCall(call) {
      if (call.state.status !== "running") statusLine.refresh()
      conversation.notes.setCall(call, lastMessageID())
      tui.requestRender()
    },
  })

  const statusLine = createStatusLine({
    ...{ api, theme, source: options.status, onProblem: addNote },
    onChange: () => tui.requestRender(),
  })

  screen.show({
    main: { render: renderMain, invalidate: () => conversation.invalidate() },
    bottom: [
      cards.component,
      lines(renderActivity),
      lines(renderTodoList),
      lines(input.renderQueue),
      input.panel,
      lines(renderNotice),
      {
        render: (width) => (hidesEditor() ? [] : input.editor.render(width)),
        handleMouse: (event) => input.editor.handleMouse?.(event),
        invalidate: () => input.editor.invalidate(),
      },
      lines(renderFooter),
    ],
    // Waits until the library has finished processing the key or wheel event.
    onTop: (lines) => queueMicrotask(() => attempt(showOlderAbove(lines))),
  })
  focus()
  if (options.draft) input.editor.setInput(options.draft)
  const attention = createAttention(tui)
  const stopListening = tui.addInputListener(handleKey)
  const stopWaiting = onHighlighter(() => {
    forgetBlocks()
    conversation.invalidate()
    tui.requestRender()
  })

  function setTheme(next: Theme): void {
    changeTheme(theme, next)
    conversation.invalidate()
    tui.invalidate()
    tui.requestRender(true)
  }

  /** Returns true if a card needs the rows of the empty editor. */
  function hidesEditor(): boolean {
    return tui.terminal.rows < minEditorRows && cards.active !== undefined && input.editor.isEmpty
  }

  function focus(): void {
    // A picker keeps the focus until the user closes the picker.
    if (!tui.hasOverlay()) tui.setFocus(cards.active ?? input.editor)
  }

  function handleKey(data: string): { consume: boolean } | undefined {
    const isDropped = cards.drops(data)
    if (tui.hasOverlay()) return undefined
    // When a picker closes, the library returns the focus to the component that had it before.
    focus()
    if (keys.matches(data, "clear")) return consume(cancel)
    notice = undefined
    if (keys.matches(data, "redraw")) return consume(redraw)
    if (keys.matches(data, "suspend") && process.platform !== "win32")
      return consume(() => void screen.suspend(conversation.redrawEnd))
    if (keys.matches(data, "expand")) return consume(toggleDetails)
    if (isDropped) return consume(() => {})
    if (cards.active) return undefined
    if (keys.matches(data, "exit") && input.editor.isEmpty) return consume(() => options.onLeave("leave"))
    if (input.handleKey(data)) return consume(() => {})
    const hasScrolled = keys.matches(data, "scrollUp")
      ? scrollUp()
      : keys.matches(data, "scrollDown") && screen.scrollPage(1)
    return hasScrolled ? consume(() => {}) : undefined
  }

  /**
   * Scrolls up in full-screen mode. Otherwise, draws earlier messages in the scrollback. Returns false if the editor
   * needs the key, because it contains text.
   */
  function scrollUp(): boolean {
    if (screen.scrollPage(-1)) return true
    if (!input.editor.isEmpty) return false
    attempt(showOlderInScrollback())
    return true
  }

  async function showOlderInScrollback(): Promise<void> {
    if (!(await showOlder())) return notify("This is the beginning of the session.")
    tui.renderNow()
    notify("Scroll up in the terminal to see earlier messages.")
  }

  /** In full-screen mode, draws earlier messages above the first line, and then scrolls by `lines`. */
  async function showOlderAbove(lines: number): Promise<void> {
    if (isLoadingOlder || !(await showOlder())) return
    const before = conversation.lineCount
    tui.renderNow()
    screen.scrollBy(conversation.lineCount - before)
    screen.scrollBy(lines)
  }

  /**
   * Draws earlier messages with the next frame. Loads the messages if necessary. Resolves with false if all messages
   * are drawn.
   */
  async function showOlder(): Promise<boolean> {
    if (conversation.showOlder()) return true
    if (!followed?.hasOlder) return false
    isLoadingOlder = true
    try {
      await followed.loadOlder()
    } finally {
      isLoadingOlder = false
    }
    return conversation.showOlder()
  }

  function attempt(work: Promise<unknown>): void {
    work.catch((error: unknown) => notify(errorMessage(error)))
  }

  function consume(action: () => void): { consume: true } {
    action()
    tui.requestRender()
    return { consume: true }
  }

  /**
   * Called when the user presses the `clear` key (by default Ctrl+C). Stops the user's shell command if one is running.
   * Otherwise, the first press clears the editor or interrupts the run, and a second press quits.
   */
  function cancel(): void {
    if (input.stopShell()) return
    const now = Date.now()
    if (now < leaveBy) {
      options.onLeave("leave")
      return
    }
    leaveBy = now + leaveMs
    const isCleared = input.clear()
    if (!isCleared && state?.isRunning) interrupt()
    const restoreKey = libraryKey("tui.editor.cursorUp")
    // With pending inputs, this key moves the last of them into the editor.
    const hasPending = state?.inputs.some(({ claimedBy }) => claimedBy === undefined) === true
    const restores = isCleared && !hasPending && restoreKey !== "" ? `${restoreKey} restores the text. ` : ""
    notify(`${restores}Press ${keys.label("clear")} again to quit.`)
  }

  function redraw(): void {
    conversation.redraw()
    tui.requestRender(true)
  }

  function interrupt(): void {
    if (!session) return
    attempt(session.interrupt())
  }

  function toggleDetails(): void {
    conversation.expanded = !conversation.expanded
  }

  function notify(text: string): void {
    notice = text
    tui.requestRender()
  }

  function addNote(text: string): void {
    conversation.notes.addText(text, lastMessageID())
    tui.requestRender()
  }

  function lastMessageID(): string | undefined {
    return state?.messages.at(-1)?.message.id
  }

  async function open(next: SessionApi | undefined): Promise<void> {
    // Notes written before the first prompt stay when the prompt creates a session.
    if (session || !next) conversation.notes.clear()
    followed?.close()
    followed = undefined
    session = next
    openings += 1
    const own = openings
    show(undefined)
    if (!next) return
    const opened = await followSession({
      api,
      session: next,
      onChange: (changed) => own === openings && show(changed),
      onEnd: (error) =>
        notify(
          error === undefined
            ? "The session was deleted."
            : `The session no longer receives updates: ${errorMessage(error)}`,
        ),
    })
    if (own !== openings) return opened.close()
    followed = opened
    // Loading the colors later would redraw the whole conversation.
    if (opened.state.messages.some(hasCode)) await loadHighlighter()
    if (own !== openings) return
    show(opened.state)
    drawFrame()
  }

  function hasCode({ parts }: MessageWithParts): boolean {
    return parts.some((part) => part.type === "text" && needsHighlighter(part.text, theme))
  }

  function show(next: SessionState | undefined): void {
    workTimer.update(next)
    if (!next?.isRunning && state?.isRunning) statusLine.refresh()
    state = next
    if (followed && next && next.messages.length > maxMessages && !isLoadingOlder) {
      followed.dropOld(Math.max(maxMessages / 2, conversation.shownCount))
      state = followed.state
    }
    conversation.setState(state, { hasOlder: followed?.hasOlder ?? false })
    showRequests()
    attention.update(next)
    tick(next?.isRunning === true)
    // A stream changes faster than the user can see. A key press draws all pending changes immediately.
    frame ??= setTimeout(drawFrame, frameMs)
  }

  function drawFrame(): void {
    clearTimeout(frame)
    frame = undefined
    const spare = conversation.spareLines()
    const result = spare > 0 ? screen.forgetLines(spare) : "needed"
    if (result !== "needed") conversation.forgetSpareLines({ areKept: result === "kept" })
    tui.renderNow()
    // Redrawing everything clears the screen, which would disturb the user during a run.
    if (!conversation.isStale || state?.isRunning) return
    conversation.redraw()
    tui.renderNow()
  }

  /** Updates the displayed duration of a run once per second. No timer is active while the session is idle. */
  function tick(isRunning: boolean): void {
    if (isRunning) ticking ??= setInterval(() => tui.requestRender(), 1_000)
    else {
      clearInterval(ticking)
      ticking = undefined
    }
  }

  function showRequests(): void {
    const { requests = [], questions = [], session: info } = state ?? {}
    cards.update({ requests, questions, worktree: info?.worktree ?? "" })
  }

  async function ensureSession(): Promise<SessionApi> {
    const known = session ?? (await api.sessions.create(defaults))
    if (!session) await open(known)
    return known
  }

  function renderMain(width: number): string[] {
    const isEmpty = !state || state.messages.length === 0
    const hint = theme.dim("? keys · / commands · @ files · ! shell")
    const welcome = isEmpty ? [...options.welcome, hint].flatMap((line) => wrap(line, width)).concat("") : []
    return [...welcome, ...conversation.render(width)]
  }

  function renderActivity(width: number): string[] {
    if (state?.error && !state.isRunning && state.error.message !== lastMessageError())
      return [...wrap(theme.error(`✗ ${visible(state.error.message)}`), width)]
    if (state?.isRunning && !cards.active) {
      const hint = keyHints([[keys.label("interrupt"), "interrupts"]])
      const text = `working · ${durationText(workTimer.elapsed())}${hint && ` · ${hint}`}`
      return [clip(`${theme.accent("●")} ${theme.dim(text)}`, width)]
    }
    const { lastRun } = state ?? {}
    if (!lastRun || (lastRun.status === "interrupted" && lastMessageError() !== undefined)) return []
    if (lastRun.status === "completed") {
      const { durationMs } = lastRun
      return durationMs < minDoneMs ? [] : [clip(theme.dim(`✓ done · ${durationText(durationMs)}`), width)]
    }
    const ends = {
      incomplete: "The answer is incomplete.",
      failed: "The run failed.",
      limit: "The run stopped at a limit.",
      interrupted: "The run was interrupted.",
    }
    return [clip(theme.warning(ends[lastRun.status]), width)]
  }

  /** Returns the error that the conversation shows at its end. */
  function lastMessageError(): string | undefined {
    const last = state?.messages.at(-1)?.message
    return last?.role === "assistant" ? last.error?.message : undefined
  }

  function renderTodoList(width: number): string[] {
    if (cards.active) return []
    const isShort = state?.isRunning !== true || tui.terminal.rows < minTodoRows
    return renderTodos(state?.todos ?? [], { width, theme, isShort })
  }

  function renderNotice(width: number): string[] {
    return notice === undefined ? [] : wrap(theme.warning(visible(notice)), width)
  }

  function renderFooter(width: number): string[] {
    const model = state?.session.model
    const facts = {
      agent: state?.session.agent ?? defaults.agent ?? "build",
      model: model ? `${model.providerID}/${model.modelID}` : defaults.model,
      hint: input.isShellRunning
        ? keyHints([[keys.label("interrupt"), "stops the command"]])
        : state?.isRunning
          ? keyHints([
              [libraryKey("tui.input.submit"), "steers"],
              [keys.label("queue"), "queues"],
            ])
          : "",
    }
    return [statusLine.render(state, facts, width)]
  }

  return {
    get session() {
      return session
    },
    open,
    send: (text) => input.submit({ text, files: [] }, "steer"),
    notify,
    addNote,
    setBackground: (background) => setTheme(builtInTheme(background, colorDepth(options.env))),
    draft: () => input.editor.take(),
    close() {
      stopListening()
      stopWaiting()
      followed?.close()
      cards.close()
      attention.close()
      statusLine.close()
      clearInterval(ticking)
      clearTimeout(frame)
    },
  }
}

/** Returns a component that ignores input and caches no lines. */
function lines(render: (width: number) => string[]): Component {
  return { render, invalidate: () => {} }
}
