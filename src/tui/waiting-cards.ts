import { type Component, Container, type Focusable } from "@earendil-works/pi-tui"
import type { TackleApi } from "../client/api.ts"
import type { PermissionReply, PermissionRequest } from "../schema/permission.ts"
import type { QuestionAnswers, QuestionRequest } from "../schema/question.ts"
import type { SessionState } from "../view/session-state.ts"
import { renderDiff } from "./diff-view.ts"
import { createPermissionCard } from "./permission-card.ts"
import { createQuestionCard } from "./question-card.ts"
import type { Theme } from "./theme.ts"

/** Shows the requests that wait for the user, one after another. */
export interface Cards {
  readonly component: Container
  /** The card that receives keyboard input, or undefined. */
  readonly active: (Component & Focusable) | undefined
  update(requests: WaitingRequests): void
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
  /** Called when a card appears or disappears, or when its request ends. */
  onFocusChange(): void
  /** Receives input that does not belong to a card. */
  onEarlyKey(data: string): void
  /** Called if an answer could not be delivered or had no effect. */
  onProblem(message: string): void
  requestRender(): void
}

/** A card on the screen. */
interface ShownCard {
  requestID: string
  component: Component &
    Focusable & { setWaiting(count: number): void; showEnd(text: string): void; close(): void }
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
    shown = { requestID, component: card, isAnswered: false, isEnded: false }
    component.addChild(card)
    onFocusChange()
  }

  function endShown(): void {
    if (!shown) return
    shown.isEnded = true
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

  function permissionCard(request: PermissionRequest): ShownCard["component"] {
    const theme = options.theme()
    return createPermissionCard({
      ...{ request, theme, requestRender, rows: options.rows, onEarlyKey: options.onEarlyKey },
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
      onEarlyKey: options.onEarlyKey,
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
    close: remove,
  }
}
