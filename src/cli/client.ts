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
