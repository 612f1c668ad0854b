import { createHash, randomBytes, timingSafeEqual } from "node:crypto"
import { linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { fileReason, systemCode, UsageError } from "../util/errors.ts"
import { createLogins } from "./logins.ts"

/** Scopes of tokens. Each scope includes the scopes before it. */
export const scopes = ["read", "reply", "run", "admin"] as const
/** The scope of a token: `read`, `reply`, `run` or `admin`. */
export type Scope = (typeof scopes)[number]

/** A token in the server's memory. The server stores only the hash of the token. */
export interface Token {
  readonly scope: Scope
  /** Tenant of the sessions that the token creates and may use. Undefined if the token may use all sessions. */
  readonly tenant?: string
  /** SHA-256 of the token. */
  readonly digest: Buffer
  /** Number of requests with this token whose responses are not complete. */
  open: number
}

/** A line in a token file. */
export interface TokenLine {
  scope: Scope
  token: string
  tenant?: string
}

/** Finds a request's token. */
export interface Authenticator {
  /**
   * Returns the token in an `Authorization` header, or undefined for a missing or wrong token. Failures resolve after a
   * delay, which grows with each failure until the next success. The comparison takes constant time.
   */
  authenticate(authorization: string | undefined): Promise<Token | undefined>
  /** Returns the token for a login cookie, or undefined for an invalid cookie. Delays failures like `authenticate`. */
  authenticateCookie(cookie: string): Promise<Token | undefined>
  /** Creates a ticket for one login: see `Logins`. */
  ticketFor(token: Token): string
  /**
   * Creates a ticket for the token with the widest scope. Prefers tokens without a tenant. The ticket is valid for
   * `seconds`.
   */
  ticketForUser(seconds: number): string
  /**
   * Exchanges a ticket for a cookie value. Resolves with undefined for an invalid ticket. Delays failures like
   * `authenticate`.
   */
  login(ticket: string): Promise<string | undefined>
}

/** Returns true if `scope` includes `required`. */
export function includes(scope: Scope, required: Scope): boolean {
  return scopes.indexOf(scope) >= scopes.indexOf(required)
}

/** Returns the delay in milliseconds before the response to the nth failure, counted from 1. */
export function failureDelay(failures: number): number {
  return Math.min(25 * 2 ** Math.min(failures - 1, 10), 5_000)
}

/** Creates the authenticator for the lines in a token file. */
export function createAuthenticator(tokens: readonly TokenLine[]): Authenticator {
  const known: Token[] = tokens.map(({ scope, token, tenant }) => ({
    scope,
    tenant,
    digest: digest(token),
    open: 0,
  }))
  const logins = createLogins(known)
  let failures = 0

  /** Returns the result. If the result is undefined, first waits for the delay after a failure. */
  async function orDelay<T>(found: T | undefined): Promise<T | undefined> {
    if (found !== undefined) {
      failures = 0
      return found
    }
    failures += 1
    const { promise, resolve } = Promise.withResolvers<void>()
    setTimeout(resolve, failureDelay(failures)).unref()
    await promise
    return undefined
  }

  return {
    authenticate(authorization = "") {
      const [, sent = ""] = /^bearer +(\S+) *$/i.exec(authorization) ?? []
      const sentDigest = digest(sent)
      let found: Token | undefined
      for (const token of known) if (timingSafeEqual(token.digest, sentDigest)) found = token
      return orDelay(found)
    },
    authenticateCookie: (cookie) => orDelay(logins.find(cookie)),
    ticketFor: logins.ticketFor,
    ticketForUser(seconds) {
      const rank = ({ scope, tenant }: Token) =>
        scopes.indexOf(scope) + (tenant === undefined ? scopes.length : 0)
      const [widest] = known.toSorted((a, b) => rank(b) - rank(a))
      if (!widest) throw new UsageError("The server has no token.")
      return logins.ticketFor(widest, seconds)
    },
    login: (ticket) => orDelay(logins.exchange(ticket)),
  }
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest()
}

/** Minimum token length, in characters. */
const shortest = 32

/**
 * Returns the tokens in a file. Each line contains a token, or a scope and a token, and may end with `tenant=NAME`;
 * empty lines and lines that start with `#` are ignored. A token without a scope has the scope `admin`. Creates a
 * missing file with one random token of 256 bits. Throws `UsageError` for an invalid file, and for a file that other
 * users can read or change.
 */
export function readTokenFile(path: string): TokenLine[] {
  let text: string
  try {
    text = readOrCreate(path)
    const { mode } = statSync(path)
    if ((mode & 0o077) !== 0)
      throw new UsageError(
        `Other users can read or change the token file ${path}. Run \`chmod 600 ${path}\`.`,
      )
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(`The token file ${path} cannot be read or created: ${fileReason(error)}.`, error)
  }
  const tokens = text.split("\n").flatMap((line, index) => readLine(line.trim(), `${path}:${index + 1}`))
  if (tokens.length === 0)
    throw new UsageError(
      `The token file ${path} contains no token. Add a token, or delete the file so that the next start creates one.`,
    )
  return tokens
}

function readLine(line: string, position: string): TokenLine[] {
  if (line === "" || line.startsWith("#")) return []
  const [, tenant] = /\s+tenant=([\w.-]{1,64})$/.exec(line) ?? []
  const words = line.replace(/\s+tenant=\S*$/, tenant === undefined ? "$&" : "").split(/\s+/)
  const [name, token] = words.length === 1 ? ["admin", words[0] ?? ""] : [words[0], words[1] ?? ""]
  const scope = scopes.find((each) => each === name)
  if (scope === undefined || words.length > 2)
    throw new UsageError(
      `${position}: expected a token, or a scope (${scopes.join(", ")}) and a token, separated by a space, and optionally tenant=NAME.`,
    )
  if (token.length < shortest)
    throw new UsageError(`${position}: the token is too short. Use at least ${shortest} random characters.`)
  return [{ scope, token, tenant }]
}

function readOrCreate(path: string): string {
  try {
    return readFileSync(path, "utf8")
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error
  }
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const temporary = `${path}.${randomBytes(6).toString("hex")}`
  try {
    writeFileSync(temporary, `${randomBytes(32).toString("base64url")}\n`, { mode: 0o600, flag: "wx" })
    // `link` fails if another server has created the file in the meantime. In this case, that server's token is used.
    linkSync(temporary, path)
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error
  } finally {
    rmSync(temporary, { force: true })
  }
  return readFileSync(path, "utf8")
}
