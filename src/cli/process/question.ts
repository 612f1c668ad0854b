import type * as Clack from "@clack/prompts"
import { AbortedError } from "../../util/abort.ts"
import { linePrompts, type Prompts } from "./line-prompts.ts"

interface Key {
  ctrl?: boolean
  name?: string
}

/**
 * Asks a question with clack. If `TERM` is `dumb`, uses {@link linePrompts} for everything except passwords. Returns
 * undefined if the user presses Escape or, in a dumb terminal, enters an empty line at a selection. Throws
 * `AbortedError` if the user presses Ctrl+C or the signal aborts. Always restores the terminal.
 */
export async function question<T>(
  ask: (prompts: Prompts & Pick<typeof Clack, "password">, signal: AbortSignal) => Promise<T>,
  signal: AbortSignal = new AbortController().signal,
): Promise<Exclude<T, symbol> | undefined> {
  // Loaded on demand, because loading the library opens the terminal, and most runs do not ask questions.
  const clack = await import("@clack/prompts")
  let interrupted = false
  // During a question, the terminal is in raw mode. Ctrl+C is then a key instead of a signal, and clack interprets it
  // as Escape.
  const onKey = (_text: unknown, key?: Key) => {
    if (key?.ctrl && key.name === "c") interrupted = true
  }
  // clack never removes its listener from the signal, and would write to the screen when the signal aborts later.
  const open = new AbortController()
  const withdraw = () => open.abort(signal.reason)
  if (signal.aborted) withdraw()
  signal.addEventListener("abort", withdraw, { once: true })
  process.stdin.prependListener("keypress", onKey)
  try {
    const answer = await ask(process.env.TERM === "dumb" ? { ...clack, ...linePrompts } : clack, open.signal)
    if (typeof answer !== "symbol") return answer as Exclude<T, symbol>
    if (interrupted || signal.aborted) throw new AbortedError("Interrupted while waiting for an answer.")
    return undefined
  } finally {
    signal.removeEventListener("abort", withdraw)
    process.stdin.off("keypress", onKey)
  }
}

/**
 * Asks for an API key without showing it. Returns undefined for Escape. Throws `AbortedError` if the user presses
 * Ctrl+C.
 */
export async function askForKey(message: string): Promise<string | undefined> {
  const key = await question(({ password }, signal) =>
    password({ message, validate: keyProblem, output: process.stderr, signal }),
  )
  return key?.trim()
}

/**
 * Returns the problem with a key, or undefined if the key is valid. A key must be one word because it is sent in a
 * header.
 */
export function keyProblem(key: string | undefined): string | undefined {
  const word = key?.trim() ?? ""
  if (word === "") return "The key cannot be empty."
  return /^[\x21-\x7e]+$/.test(word) ? undefined : "A key is one word of letters, digits and symbols."
}

/** Names of clients whose users can answer questions. The names are OpenCode's. */
const clients: readonly string[] = ["app", "cli", "desktop"]

/** Returns true if this process can ask the user. This requires a terminal and a client that shows questions. */
export function canAskHere(environment: Readonly<Record<string, string | undefined>>): boolean {
  return atTerminal() && clients.includes(clientOf(environment) ?? "cli")
}

/**
 * Returns true if the client that `TACKLE_CLIENT` or `OPENCODE_CLIENT` specifies can ask the user. If neither is set,
 * returns true in a terminal. Tools that ask the user are listed only in these cases.
 */
export function clientCanAsk(environment: Readonly<Record<string, string | undefined>>): boolean {
  const client = clientOf(environment)
  return client === undefined ? atTerminal() : clients.includes(client)
}

function clientOf(environment: Readonly<Record<string, string | undefined>>): string | undefined {
  return environment.TACKLE_CLIENT || environment.OPENCODE_CLIENT || undefined
}

/** Returns true if both stdin and stderr are terminals. */
export function atTerminal(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}
