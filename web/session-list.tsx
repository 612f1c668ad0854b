import type { RemoteSession } from "../src/client/sessions.ts"
import type { SessionMatch } from "../src/schema/session.ts"
import { isOnline } from "./connection.ts"
import { openSession, sessionID } from "./current-session.ts"
import { Icon, Logo } from "./icons.tsx"
import { logOut } from "./login.tsx"
import { memo } from "./memo.ts"
import { dialog, isDrawerOpen } from "./session-actions.ts"
import { hasMore, loadMoreSessions, search, searchSessions, shownSessions } from "./session-list-data.ts"
import { currentTheme, toggleTheme } from "./theme.ts"

/** The session list with its search field. On a narrow page, it is a drawer. */
export function SessionList() {
  const list = shownSessions.value
  return (
    <>
      {isDrawerOpen.value && (
        <button type="button" class="shade" aria-label="Close the list" onClick={closeDrawer} />
      )}
      <nav class={`sidebar ${isDrawerOpen.value ? "open" : ""}`} aria-label="Sessions">
        <div class="sidebar-head">
          <Logo />
          <span class="brand">Tackle</span>
          <span class="spacer" />
          <button
            type="button"
            class="quiet"
            aria-label="New session"
            title="New session (c)"
            onClick={() => go(undefined)}
          >
            <Icon name="add" />
          </button>
        </div>
        <label class="search">
          <Icon name="search" />
          <input
            id="session-search"
            type="search"
            aria-label="Search all sessions"
            placeholder="Search"
            value={search}
            onInput={({ currentTarget }) => searchSessions(currentTarget.value)}
          />
        </label>
        <div class="session-scroll">
          {list === undefined && <p class="muted small hint">Loading…</p>}
          {list?.length === 0 && (
            <p class="muted small hint">
              {search.value === "" ? "No sessions yet." : "No session contains all of these words."}
            </p>
          )}
          {list && list.length > 0 && (
            <ul class="sessions">
              {list.map((session) => (
                <SessionItem key={session.id} session={session} isCurrent={session.id === sessionID.value} />
              ))}
            </ul>
          )}
          {hasMore.value && search.value === "" && (
            <button type="button" class="more-lines" onClick={loadMoreSessions}>
              Show more
            </button>
          )}
        </div>
        <div class="sidebar-foot">
          <span class={`connection ${isOnline.value ? "" : "lost"}`} role="status">
            {isOnline.value ? "Connected" : "Connection lost"}
          </span>
          <span class="spacer" />
          <button
            type="button"
            class="quiet"
            aria-label="Keyboard shortcuts"
            title="Keyboard shortcuts (?)"
            onClick={() => {
              dialog.value = "shortcuts"
            }}
          >
            <Icon name="help" />
          </button>
          <button
            type="button"
            class="quiet"
            aria-label={currentTheme() === "dark" ? "Use the light theme" : "Use the dark theme"}
            onClick={toggleTheme}
          >
            <Icon name={currentTheme() === "dark" ? "sun" : "moon"} />
          </button>
          <button type="button" class="quiet text" onClick={logOut}>
            Log out
          </button>
        </div>
      </nav>
    </>
  )
}

function closeDrawer(): void {
  isDrawerOpen.value = false
}

function go(id: string | undefined): void {
  closeDrawer()
  openSession(id)
}

const statusText = { idle: "", running: "running", waiting: "waiting for you" } as const

const SessionItem = memo(({ session, isCurrent }: { session: RemoteSession; isCurrent: boolean }) => {
  const { id, title, directory, status, time, match } = session
  return (
    <li>
      <a
        href={`/#${id}`}
        class="session"
        aria-current={isCurrent ? "page" : undefined}
        onClick={(event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return
          event.preventDefault()
          go(id)
        }}
      >
        <span class="session-title">
          <span>{title || "New session"}</span>
          {status !== "idle" && (
            <span class={`status ${status}`}>
              <span class="visually-hidden">, {statusText[status]}</span>
            </span>
          )}
        </span>
        {match && match.messageID !== undefined && <Excerpt match={match} />}
        <span class="session-info">
          {directory.slice(directory.lastIndexOf("/") + 1)} · {age(time.updated)}
        </span>
      </a>
    </li>
  )
})

/** A text excerpt in which the search words are marked. */
function Excerpt({ match: { excerpt, marks } }: { match: SessionMatch }) {
  const ends = [0, ...marks.map(([, end]) => end)]
  return (
    <span class="excerpt">
      {marks.map(([start, end], index) => [
        withoutMarkdown(excerpt.slice(ends[index], start)),
        <mark key={`${start}`}>{excerpt.slice(start, end)}</mark>,
      ])}
      {withoutMarkdown(excerpt.slice(ends.at(-1)))}
    </span>
  )
}

/** Removes the marks of headings, bold text and code, which distract in one line of text. */
function withoutMarkdown(text: string): string {
  return text.replace(/\*\*|`+/g, "").replace(/(^|\s)#{1,6} /g, "$1")
}

/** Returns the time since the given time, such as `5 min`. */
function age(time: number): string {
  const minutes = Math.floor((Date.now() - time) / 60_000)
  if (minutes < 1) return "now"
  if (minutes < 60) return `${minutes} min`
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h`
  if (minutes < 7 * 24 * 60) return `${Math.floor(minutes / (24 * 60))} d`
  return new Date(time).toLocaleDateString(undefined, { day: "numeric", month: "short", year: "numeric" })
}
