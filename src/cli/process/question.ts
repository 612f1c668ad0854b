import { AbortedError } from "../../util/abort.ts"

/** Loaded at the first question: few runs ask any, and it opens the terminal at once. */
export type Clack = typeof import("@clack/prompts")

interface Key {
  ctrl?: boolean
  name?: string
}

/**
 * Puts a question of clack's to the person. Undefined: they left it with Escape. Throws `AbortedError` for Ctrl-C,
 * which is no answer but an end to everything, and when the signal fires; the terminal is as it was in every case.
 */
export async function question<T>(
  ask: (clack: Clack, signal: AbortSignal) => Promise<T>,
  signal: AbortSignal = new AbortController().signal,
): Promise<Exclude<T, symbol> | undefined> {
  const clack = await import("@clack/prompts")
  let interrupted = false
  // At a question the terminal is in raw mode: Ctrl-C is a key and no signal, and clack takes it for Escape.
  const onKey = (_text: unknown, key?: Key) => {
    if (key?.ctrl && key.name === "c") interrupted = true
  }
  // Clack listens to its signal for ever, and at its end would write over what is on the screen by then.
  const open = new AbortController()
  const withdraw = () => open.abort(signal.reason)
  if (signal.aborted) withdraw()
  signal.addEventListener("abort", withdraw, { once: true })
  process.stdin.prependListener("keypress", onKey)
  try {
    const answer = await ask(clack, open.signal)
    if (!clack.isCancel(answer)) return answer as Exclude<T, symbol>
    if (interrupted || signal.aborted) throw new AbortedError("Interrupted at a question.")
    return undefined
  } finally {
    signal.removeEventListener("abort", withdraw)
    process.stdin.off("keypress", onKey)
  }
}

/** Clients with a person who answers questions, by the names that OpenCode gives them. */
const clients: readonly string[] = ["app", "cli", "desktop"]

/** True where this process can ask a person: it has a terminal, and is not driven by a client that shows no questions. */
export function canAskHere(environment: Readonly<Record<string, string | undefined>>): boolean {
  return atTerminal() && clients.includes(environment.TACKLE_CLIENT ?? "cli")
}

/** The same for a list of tools: it tells what a run would be offered by the client that `TACKLE_CLIENT` names. */
export function clientCanAsk(environment: Readonly<Record<string, string | undefined>>): boolean {
  const { TACKLE_CLIENT: client } = environment
  return client === undefined ? atTerminal() : clients.includes(client)
}

/** Both ends of a question: where it is shown, and where it is answered. */
export function atTerminal(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}
