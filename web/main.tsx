import { render } from "preact"
import { useEffect } from "preact/hooks"
import { Composer } from "./composer.tsx"
import { isLoggedIn, isOnline } from "./connection.ts"
import { Conversation } from "./conversation.tsx"
import { followAddress, loadError, openSession, sessionID, state } from "./current-session.ts"
import { Dialogs } from "./dialogs.tsx"
import { LoginPage, logIn } from "./login.tsx"
import { Notices } from "./notices.tsx"
import { Queue } from "./queue.tsx"
import { SessionHeader } from "./session-header.tsx"
import { SessionList } from "./session-list.tsx"
import { followSessions } from "./session-list-data.ts"
import { handleShortcuts } from "./shortcuts.tsx"
import { StartPage } from "./start-page.tsx"
import { applyTheme } from "./theme.ts"
import { TodoList } from "./todo-list.tsx"

applyTheme()
const root = document.getElementById("root")
if (root) render(<Page />, root)
// Removes the ticket from the address before anything else reads the address.
void logIn()
followAddress()
handleShortcuts()

function Page() {
  if (isLoggedIn.value === undefined) return null
  return (
    <>
      {isLoggedIn.value ? <App /> : <LoginPage />}
      <Notices />
    </>
  )
}

function App() {
  useEffect(() => followSessions(), [])
  return (
    <div class="app">
      <SessionList />
      <main>
        <SessionHeader state={state.value} />
        {!isOnline.value && (
          <p class="offline" role="alert">
            The server does not respond. The page reconnects when the server is available again.
          </p>
        )}
        <Content />
      </main>
      <Dialogs />
    </div>
  )
}

function Content() {
  if (sessionID.value === undefined) return <StartPage />
  if (loadError.value !== undefined)
    return (
      <div class="start">
        <div class="start-box">
          <h2>This session cannot be shown</h2>
          <p>{loadError}</p>
          <button type="button" onClick={() => openSession(undefined)}>
            Start a new session
          </button>
        </div>
      </div>
    )
  const current = state.value
  if (!current) return <p class="loading muted">Loading…</p>
  return (
    <>
      <Conversation state={current} />
      <div class="dock">
        <TodoList state={current} />
        <Queue state={current} />
        <Composer state={current} />
      </div>
    </>
  )
}
