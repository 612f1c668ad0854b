import { openSession, sessionID } from "./current-session.ts"
import { dialog, isDrawerOpen, stopRun } from "./session-actions.ts"
import { shownSessions } from "./session-list-data.ts"

const shortcuts: readonly [group: string, keys: readonly [keys: string, action: string][]][] = [
  [
    "Anywhere",
    [
      ["?", "show this list"],
      ["c", "start a new session"],
      ["/", "search the sessions"],
      ["i", "write a message"],
      ["Alt+↑ / Alt+↓", "previous or next session"],
      ["Ctrl+.", "stop the run"],
    ],
  ],
  [
    "Message",
    [
      ["Enter", "send"],
      ["Shift+Enter", "new line"],
      ["Ctrl+Enter", "send after the run"],
      ["/", "at the start: complete a command or skill"],
      ["@", "complete a file"],
      ["Esc", "leave the message box"],
    ],
  ],
  [
    "Permission",
    [
      ["y", "allow once"],
      ["s / p", "allow for the session or the project"],
      ["e", "edit the rule"],
      ["n", "reject"],
    ],
  ],
]

/** The list of all shortcuts. */
export function ShortcutList() {
  return (
    <div class="shortcuts">
      {shortcuts.map(([group, keys]) => (
        <section key={group}>
          <h3>{group}</h3>
          <dl>
            {keys.map(([key, action]) => (
              <div key={key}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{action}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </div>
  )
}

/**
 * Starts handling the page's shortcuts. Keys without a modifier, except Escape, are ignored while a text field has the
 * focus.
 */
export function handleShortcuts(): void {
  document.addEventListener("keydown", (event) => {
    if (dialog.value !== undefined || event.isComposing) return
    const action = actionOf(event)
    if (!action) return
    event.preventDefault()
    action()
  })
}

function actionOf(event: KeyboardEvent): (() => void) | undefined {
  const { key, altKey, ctrlKey, metaKey, target } = event
  if ((ctrlKey || metaKey) && key === ".") return () => void stopRun()
  if (altKey && key === "ArrowUp") return () => step(-1)
  if (altKey && key === "ArrowDown") return () => step(1)
  if (key === "Escape" && isDrawerOpen.value)
    return () => {
      isDrawerOpen.value = false
    }
  const isField =
    target instanceof HTMLElement &&
    target.matches("input:not([type=radio], [type=checkbox]), textarea, select")
  if (isField || altKey || ctrlKey || metaKey) return undefined
  switch (key) {
    case "?":
      return () => {
        dialog.value = "shortcuts"
      }
    case "c":
      return () => openSession(undefined)
    case "/":
      return () => {
        isDrawerOpen.value = true
        focus("session-search")
      }
    case "i":
      return () => focus("message-box")
    default:
      return undefined
  }
}

function focus(id: string): void {
  requestAnimationFrame(() => document.getElementById(id)?.focus())
}

function step(by: number): void {
  const list = shownSessions.value ?? []
  const index = list.findIndex(({ id }) => id === sessionID.value)
  const next = list[index < 0 ? 0 : index + by]
  if (next) openSession(next.id)
}
