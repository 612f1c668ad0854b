import { createHmac, randomBytes, timingSafeEqual } from "node:crypto"

/** The properties of a token that are used to sign cookies. */
interface Signer {
  readonly digest: Buffer
}

/** Logs web pages in. A page receives a ticket in its URL and exchanges it for a cookie. */
export interface Logins<Token> {
  /**
   * Creates a ticket for one login with a token's scope. The ticket is valid for `seconds`, by default {@link
   * ticketSeconds}.
   */
  ticketFor(token: Token, seconds?: number): string
  /**
   * Returns the cookie value for a ticket, or undefined for an unknown, used or expired ticket. The cookie expires
   * after `cookieSeconds`, or when the token is removed. It stays valid if the server restarts.
   */
  exchange(ticket: string): string | undefined
  /** Returns the token for a cookie, or undefined for an invalid or expired cookie. */
  find(cookie: string): Token | undefined
}

/** Default time in seconds for which a ticket is valid. */
export const ticketSeconds = 60

/** Time in seconds after which a page must log in again. */
export const cookieSeconds = 30 * 24 * 60 * 60

/** Maximum number of unused tickets. The oldest ticket is removed first. */
const maxTickets = 100

/** Creates the ticket store and the cookie signer for a server. `now` returns the time in milliseconds. */
export function createLogins<Token extends Signer>(
  tokens: readonly Token[],
  now: () => number = Date.now,
): Logins<Token> {
  const tickets = new Map<string, { token: Token; end: number }>()

  return {
    ticketFor(token, seconds = ticketSeconds) {
      const ticket = randomBytes(32).toString("base64url")
      tickets.set(ticket, { token, end: now() + seconds * 1000 })
      for (const oldest of tickets.keys()) {
        if (tickets.size <= maxTickets) break
        tickets.delete(oldest)
      }
      return ticket
    },
    exchange(ticket) {
      const found = tickets.get(ticket)
      tickets.delete(ticket)
      if (!found || found.end <= now()) return undefined
      const content = `${now() + cookieSeconds * 1000}.${randomBytes(16).toString("base64url")}`
      return `${content}.${sign(content, found.token)}`
    },
    find(cookie) {
      const [, content = "", end = "", signature = ""] = /^((\d+)\.[\w-]+)\.([\w-]+)$/.exec(cookie) ?? []
      if (Number(end) <= now()) return undefined
      return tokens.find((token) => isEqual(sign(content, token), signature))
    },
  }
}

function sign(content: string, { digest }: Signer): string {
  return createHmac("sha256", digest).update(`cookie ${content}`).digest("base64url")
}

function isEqual(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}
