import { type Component, Container, type Focusable, matchesKey } from "@earendil-works/pi-tui"
import type { TackleApi } from "../client/api.ts"
import type { PermissionReply, PermissionRequest } from "../schema/permission.ts"
import type { QuestionAnswers, QuestionRequest } from "../schema/question.ts"
import { replyChoices } from "../view/reply-choices.ts"
import type { SessionState } from "../view/session-state.ts"
import { createPause, isReport, pasteStart } from "./card-parts.ts"
import { renderDiff } from "./diff-view.ts"
import { createPermissionCard } from "./permission-card.ts"
import type { PromptEditor } from "./prompt-editor.ts"
import { createQuestionCard } from "./question-card.ts"
import type { Theme } from "./theme.ts"

/** Shows the requests that wait for the user, one after another. */
export interface Cards {
  readonly component: Container
  /** The card that receives keyboard input, or undefined. */
  readonly active: (Component & Focusable) | undefined
  update(requests: WaitingRequests): void
  /**
   * Call this with all input, before any component uses it. Returns true if the input must be dropped: the user typed
   * it for a card that has just disappeared.
   */
  drops(data: string): boolean
  close(): void
}

/** The requests that wait for the user. Paths inside the worktree are displayed relative to it. */
export interface WaitingRequests extends Pick<SessionState, "requests" | "questions"> {
  worktree: string
}

/** Options for {@link createCards}. */
export interface CardsOptions {
  api: TackleApi
  theme(): Theme
  /** Maximum height of a card in lines. */
  rows(): number
  editor(): Pick<PromptEditor, "text" | "take" | "isEmpty">
  /** Returns true if a picker covers the card and receives the input. */
  isCovered(): boolean
  /** Called when a card appears or disappears, or when its request ends. */
  onFocusChange(): void
  /**
   * Receives input that does not belong to a card. If the editor was empty when the card appeared, this is only pasted
   * text and the key Escape. Other keys were meant for the card, and are dropped.
   */
  onEarlyKey(data: string): void
  /** Called if an answer could not be delivered or had no effect. */
  onProblem(message: string): void
  requestRender(): void
}

/** A card on the screen. */
interface ShownCard {
  requestID: string
  component: Component &
    Focusable & {
      setWaiting(count: number): void
      delayKeys(): void
      showEnd(text: string): void
      close(): void
    }
  /** True if this client has sent an answer. */
  isAnswered: boolean
  isEnded: boolean
}

/** Time in milliseconds for which a card shows that its request no longer waits. */
const endedMs = 2_000

/** Creates the cards. Permission requests come before questions. */
export function createCards(options: CardsOptions): Cards {
  const { api, requestRender, onFocusChange, onProblem } = options
  const component = new Container()
  let shown: ShownCard | undefined
  let state: WaitingRequests = { requests: [], questions: [], worktree: "" }
  let removal: ReturnType<typeof setTimeout> | undefined
  /** True if the editor contained text when the latest card appeared. */
  let hadDraft = false
  /** Keys that the user typed without a pause, and whether they belong to a card. */
  let typed = { text: "", isForCard: false }
  /** The pause after the latest key. */
  const late = createPause()

  function update(next: WaitingRequests): void {
    state = next
    const { requests, questions } = next
    const waiting = [...requests, ...questions]
    if (shown && !shown.isEnded && !waiting.some(({ id }) => id === shown?.requestID)) {
      if (shown.isAnswered) remove()
      else endShown()
    }
    if (!shown) {
      const [request] = requests
      const [question] = questions
      if (request) show(request.id, permissionCard(request))
      else if (question) show(question.id, questionCard(question))
    }
    shown?.component.setWaiting(Math.max(0, waiting.filter(({ id }) => id !== shown?.requestID).length))
  }

  function show(requestID: string, card: ShownCard["component"]): void {
    const editor = options.editor()
    // The user saw the call a moment before its card.
    const isEarlyAnswer = !late.isOver && answerKeys.has(editor.text()) && typed.text.endsWith(editor.text())
    if (isEarlyAnswer) editor.take()
    hadDraft = !editor.isEmpty
    shown = { requestID, component: card, isAnswered: false, isEnded: false }
    component.addChild(card)
    onFocusChange()
  }

  function endShown(): void {
    if (!shown) return
    shown.isEnded = true
    typed = { text: "", isForCard: true }
    late.restart()
    shown.component.showEnd("This request was answered in another window, or its run has ended.")
    removal = setTimeout(() => {
      remove()
      update(state)
      requestRender()
    }, endedMs)
    onFocusChange()
  }

  function remove(): void {
    clearTimeout(removal)
    if (!shown) return
    shown.component.close()
    component.removeChild(shown.component)
    shown = undefined
    onFocusChange()
  }

  function onEarlyKey(data: string): void {
    if (hadDraft || belongsToEditor(data)) options.onEarlyKey(data)
  }

  function drops(data: string): boolean {
    if (options.isCovered()) {
      shown?.component.delayKeys()
      return false
    }
    const continues = !late.isOver
    if (shown && !shown.isEnded) {
      typed = { text: continues ? typed.text + data : data, isForCard: true }
      // These keys complete an answer, so the next key does not belong to it.
      if (matchesKey(data, "enter") || matchesKey(data, "escape")) late.close()
      else late.restart()
      return false
    }
    if (belongsToEditor(data)) return false
    const isDropped =
      continues && typed.isForCard && !hadDraft && (shown !== undefined || continuesAnswer(typed.text, data))
    const isSameText = continues && typed.isForCard === isDropped
    typed = { text: isSameText ? typed.text + data : data, isForCard: isDropped }
    late.restart()
    return isDropped
  }

  function permissionCard(request: PermissionRequest): ShownCard["component"] {
    const theme = options.theme()
    return createPermissionCard({
      ...{ request, theme, requestRender, rows: options.rows, onEarlyKey },
      worktree: state.worktree,
      onReply: (reply) => void answer(request.id, () => replyTo(request, reply)),
      renderDiff: (diff, width) =>
        renderDiff(diff, { width, theme, maxLines: Number.POSITIVE_INFINITY, wraps: true }),
    })
  }

  async function replyTo(request: PermissionRequest, reply: PermissionReply): Promise<void> {
    const outcome = await api.reply(request.id, reply)
    if (outcome === "already")
      onProblem("The request had already been answered elsewhere, so your answer had no effect.")
  }

  function questionCard(request: QuestionRequest): ShownCard["component"] {
    return createQuestionCard({
      ...{ request, theme: options.theme(), requestRender, rows: options.rows },
      onEarlyKey,
      onAnswer: (answers) => void answer(request.id, () => answerQuestion(request.id, answers)),
    })
  }

  async function answerQuestion(id: string, answers: QuestionAnswers | undefined): Promise<void> {
    await (answers ? api.questions.reply(id, answers) : api.questions.reject(id))
  }

  async function answer(requestID: string, deliver: () => Promise<void>): Promise<void> {
    if (shown?.requestID === requestID) shown.isAnswered = true
    try {
      await deliver()
    } catch (error) {
      onProblem(`The answer was not delivered: ${error instanceof Error ? error.message : String(error)}`)
      if (shown?.requestID === requestID) remove()
    }
    update(state)
    requestRender()
  }

  return {
    component,
    get active() {
      return shown && !shown.isEnded ? shown.component : undefined
    },
    update,
    drops,
    close() {
      late.close()
      remove()
    },
  }
}

/** Returns true for input that the user does not type as an answer. */
function belongsToEditor(data: string): boolean {
  return data.includes(pasteStart) || matchesKey(data, "escape") || isReport(data)
}

/** Returns true if the key repeats the last of the typed keys, or continues a word that answers a permission request. */
function continuesAnswer(typed: string, key: string): boolean {
  return typed.endsWith(key) || answerWords.some((word) => word.startsWith(typed + key))
}

const answers = replyChoices({ always: true, worktree: "" })
const answerWords = answers.flatMap(({ words = [] }) => words)
const answerKeys = new Set(answers.flatMap(({ key, digit }) => [key, String(digit)]))
