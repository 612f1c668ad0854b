import { signal } from "@preact/signals"
import { errorText } from "./errors.ts"
import { Icon } from "./icons.tsx"

interface Notice {
  id: number
  text: string
  kind: "info" | "error"
}

const notices = signal<readonly Notice[]>([])
const announced = signal("")
let lastID = 0

/** Time in milliseconds after which information disappears. Errors stay until closed or until three messages follow. */
const shownMs = 6_000

/** Shows a message to the user and announces it to screen readers. */
export function notify(text: string, kind: Notice["kind"] = "info"): void {
  lastID += 1
  const notice = { id: lastID, text, kind }
  notices.value = [...notices.value.slice(-2), notice]
  if (kind === "info") setTimeout(() => close(notice.id), shownMs)
}

/** Runs an operation and shows its error to the user. Resolves with undefined after an error. */
export async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    notify(errorText(error), "error")
    return undefined
  }
}

/** Announces a message to screen readers without showing it. */
export function announce(text: string): void {
  announced.value = text
}

/** Closes all messages except errors. Call this when the user opens another session, because they cover a part of it. */
export function closeInformation(): void {
  notices.value = notices.peek().filter(({ kind }) => kind === "error")
}

function close(id: number): void {
  notices.value = notices.value.filter((notice) => notice.id !== id)
}

/** The messages, and the live region for screen readers. */
export function Notices() {
  return (
    <>
      <div class="visually-hidden" role="status" aria-live="polite">
        {announced}
      </div>
      <section class="notices" aria-label="Messages" aria-live="polite">
        {notices.value.map(({ id, text, kind }) => (
          <div key={id} class={`notice ${kind}`}>
            <Icon name={kind === "error" ? "warning" : "check"} />
            <span>
              {text.split("`").map((part, index) => (index % 2 === 0 ? part : <code>{part}</code>))}
            </span>
            <button type="button" class="quiet" aria-label="Close this message" onClick={() => close(id)}>
              <Icon name="close" />
            </button>
          </div>
        ))}
      </section>
    </>
  )
}
