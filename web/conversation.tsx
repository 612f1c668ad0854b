import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import type { SessionState } from "../src/view/session-state.ts"
import { hasOlder, isWaiting, loadOlder } from "./current-session.ts"
import { Icon } from "./icons.tsx"
import { Message } from "./message.tsx"
import { RequestCards } from "./requests.tsx"

/** Distance in pixels from the end within which the reader counts as being at the end. */
const near = 120

/**
 * The session's messages. Stays scrolled to the end while the reader is at the end, and loads older messages when the
 * reader nears the beginning. The style sheet makes the browser skip messages that are not visible.
 */
export function Conversation({ state }: { state: SessionState }) {
  const scroller = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  const position = useRef(0)
  const [isAway, setAway] = useState(false)
  const isRestoring = useRef(false)
  const saving = useRef<ReturnType<typeof setTimeout>>(undefined)
  const { messages, session } = state

  function toEnd() {
    const element = scroller.current
    if (!element) return
    // The user reads a request from its start.
    const card = element.querySelector<HTMLElement>(".card")
    element.scrollTop = card ? card.offsetTop - 12 : element.scrollHeight
  }

  function onScroll() {
    const element = scroller.current
    if (!element) return
    const distance = element.scrollHeight - element.scrollTop - element.clientHeight
    isAtEnd.current = distance < near
    position.current = element.scrollTop
    setAway(distance > 4 * near)
    clearTimeout(saving.current)
    saving.current = setTimeout(() => {
      if (!isRestoring.current) savePlace(session.id, isAtEnd.current ? undefined : placeIn(element))
    }, 100)
    if (element.scrollTop < 4 * near) void loadOlder()
  }

  useLayoutEffect(() => {
    const place = savedPlace(session.id)
    isAtEnd.current = !place
    toEnd()
    if (!place || !scroller.current) return
    isRestoring.current = true
    void goTo(scroller.current, place).finally(() => {
      isRestoring.current = false
      onScroll()
    })
  }, [session.id])

  // The height also changes without new messages, such as when a card opens.
  useEffect(() => {
    const observer = new ResizeObserver(() => {
      if (isAtEnd.current) toEnd()
    })
    if (content.current) observer.observe(content.current)
    if (scroller.current) observer.observe(scroller.current)
    return () => observer.disconnect()
  }, [])

  // Keeps the first message in place when older messages arrive above it.
  const first = messages[0]?.message.id
  const before = useRef<{ first?: string; element?: HTMLElement | null; offset: number }>({ offset: 0 })
  useLayoutEffect(() => {
    const view = scroller.current
    if (!view) return
    const { element, offset } = before.current
    if (element?.isConnected && before.current.first !== first && !isAtEnd.current)
      view.scrollTop = position.current + element.offsetTop - offset
    const top = view.querySelector<HTMLElement>(".group")
    before.current = { first, element: top, offset: top?.offsetTop ?? 0 }
  })

  return (
    <div class="conversation">
      <div
        class="scroller"
        ref={scroller}
        onScroll={onScroll}
        tabIndex={0}
        role="region"
        aria-label="Conversation"
      >
        <div class="column" ref={content}>
          {hasOlder.value && (
            <button type="button" class="older" onClick={() => loadOlder()}>
              Load older messages
            </button>
          )}
          {groupsOf(messages).map((group) => (
            <div class="group" key={group[0]?.message.id}>
              {group.map((item) => (
                <Message key={item.message.id} item={item} worktree={session.worktree} />
              ))}
            </div>
          ))}
          <RunEnd state={state} />
          <RequestCards state={state} />
        </div>
      </div>
      {isAway && (
        <button type="button" class="to-end" onClick={toEnd}>
          <Icon name="down" /> {isWaiting.value ? "The agent is waiting for you" : "Latest"}
        </button>
      )}
    </div>
  )
}

/**
 * Number of messages that the browser skips together. The number of older messages that are loaded at once is a
 * multiple of this number.
 */
const groupSize = 50

function groupsOf(messages: SessionState["messages"]): SessionState["messages"][] {
  const count = Math.ceil(messages.length / groupSize)
  return Array.from({ length: count }, (_, index) =>
    messages.slice(index * groupSize, (index + 1) * groupSize),
  )
}

/**
 * The reading position: a message, and the distance in pixels from the top of the visible area to the top of the
 * message.
 */
interface Place {
  id: string
  offset: number
}

function placeIn(scroller: HTMLElement): Place | undefined {
  const { top, left, width } = scroller.getBoundingClientRect()
  // The first point can lie between two messages.
  const at = (y: number) => document.elementFromPoint(left + width / 2, top + y)?.closest(".column .message")
  const element = at(1) ?? at(40)
  return element ? { id: element.id, offset: element.getBoundingClientRect().top - top } : undefined
}

/**
 * Stores the reading position of a session for this window, so that it is restored after a reload. Without a position,
 * the session opens at its end.
 */
function savePlace(id: string, place: Place | undefined): void {
  if (place) sessionStorage.setItem(`place-${id}`, JSON.stringify(place))
  else sessionStorage.removeItem(`place-${id}`)
}

function savedPlace(id: string): Place | undefined {
  return JSON.parse(sessionStorage.getItem(`place-${id}`) ?? "null") ?? undefined
}

/** Maximum number of times that older messages are loaded to restore a reading position. */
const maxPages = 30

async function goTo(scroller: HTMLElement, { id, offset }: Place): Promise<void> {
  const find = () => scroller.querySelector(`#${CSS.escape(id)}`)
  for (let page = 0; page < maxPages && !find() && hasOlder.value; page += 1) {
    await loadOlder()
    await new Promise((resolve) => setTimeout(resolve, 60))
  }
  // The browser only estimates the height of messages until it has rendered them.
  for (let frame = 0; frame < 8; frame += 1) {
    const top = find()?.getBoundingClientRect().top
    if (top === undefined) return
    scroller.scrollTop += top - scroller.getBoundingClientRect().top - offset
    await new Promise(requestAnimationFrame)
  }
}

const ends = {
  incomplete: "The answer is incomplete. Send a message to continue.",
  failed: "The run failed. Send a message to try again.",
  limit: "The run reached a limit. Send a message to continue.",
  interrupted: "The run was stopped. Send a message to continue.",
} as const

function RunEnd({ state: { lastRun, error, isRunning, messages } }: { state: SessionState }) {
  if (isRunning) return null
  const last = messages.at(-1)?.message
  const isShown = last?.role === "assistant" && last.error?.message === error?.message
  if (error && !isShown)
    return (
      <p class="problem" role="alert">
        <Icon name="error" /> {error.message}
      </p>
    )
  if (!lastRun || lastRun.status === "completed") return null
  return <p class="run-end">{ends[lastRun.status]}</p>
}
