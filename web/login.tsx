import { useState } from "preact/hooks"
import { isLoggedIn } from "./connection.ts"
import { Logo } from "./icons.tsx"

/**
 * Logs in with the ticket in the page's address, and immediately removes the ticket from the address and the history.
 * Then checks the cookie. Never rejects.
 */
export async function logIn(): Promise<void> {
  const ticket = /^#ticket=([\w-]+)$/.exec(location.hash)?.[1]
  if (ticket !== undefined) {
    history.replaceState(null, "", "/")
    await exchange(ticket)
  }
  isLoggedIn.value = (await send("/session?limit=1"))?.ok ?? false
}

/** Removes this browser's cookie. */
export async function logOut(): Promise<void> {
  await send("/logout", { method: "POST" })
  isLoggedIn.value = false
}

async function exchange(ticket: string): Promise<boolean> {
  const body = JSON.stringify({ ticket })
  const headers = { "content-type": "application/json" }
  return (await send("/login", { method: "POST", headers, body }))?.ok ?? false
}

/** Logs in with a token from the token file. Resolves with a message for the user if the login fails. */
async function logInWithToken(token: string): Promise<string | undefined> {
  const answer = await send("/ticket", { method: "POST", headers: { authorization: `Bearer ${token}` } })
  if (!answer) return "The server does not respond. Check that `tackle serve` is running."
  if (answer.status === 401)
    return "The server does not know this token. Copy a token from the server's token file."
  const { ticket } = (await answer.json()) as { ticket: string }
  if (!(await exchange(ticket))) return "The server refused the login. Try again."
  isLoggedIn.value = true
  return undefined
}

function send(path: string, options?: RequestInit): Promise<Response | undefined> {
  return fetch(path, options).catch(() => undefined)
}

/** The page that is shown without a login. */
export function LoginPage() {
  const [token, setToken] = useState("")
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)

  async function submit(event: Event) {
    event.preventDefault()
    // A header cannot contain other characters.
    if (!/^[\x21-\x7e]+$/.test(token.trim()))
      return setProblem(
        "This is not a valid token, because it contains a space or a special character. Copy the whole token again.",
      )
    setBusy(true)
    setProblem(await logInWithToken(token.trim()))
    setBusy(false)
  }

  return (
    <main class="login">
      <div class="login-box">
        <Logo />
        <h1>Log in to Tackle</h1>
        <p>
          In a terminal on the server's machine, run this command and open its link. Each link works only
          once.
        </p>
        <pre class="command">
          <code>tackle web {location.origin}</code>
        </pre>
        <form onSubmit={submit}>
          <label for="token">Or paste a token</label>
          <input
            id="token"
            type="password"
            autocomplete="off"
            spellcheck={false}
            value={token}
            aria-describedby="token-help"
            onInput={(event) => setToken(event.currentTarget.value)}
          />
          <p id="token-help" class="muted small">
            <code>tackle serve</code> prints the path of its token file.
          </p>
          {problem !== undefined && (
            <p class="problem" role="alert">
              {problem}
            </p>
          )}
          <button type="submit" class="primary wide" disabled={isBusy || token.trim() === ""}>
            Log in
          </button>
        </form>
      </div>
    </main>
  )
}
