import { spawn } from "node:child_process"
import { addServer } from "../../config/server-file.ts"
import { dataPlaces } from "../../engine/data-directory.ts"
import { enabledServers, McpConfig, type RemoteServer } from "../../mcp/client/config.ts"
import { errorMessage, TackleError, UsageError } from "../../util/errors.ts"
import { findProgram } from "../../util/find-program.ts"
import { atTerminal } from "../client.ts"
import { openPlace, type Place, type PlaceFlags } from "../place.ts"
import { printLine } from "../print.ts"
import { visible } from "../view/visible.ts"

/** `env` is for a program, `header` for an address; each as `name=value`. */
export interface AddServerFlags extends PlaceFlags {
  /** Into the person's own config, in place of the project's. */
  user?: boolean
  env?: string[]
  header?: string[]
}

/** `browser` is false under `--no-browser`: the address is only printed. */
export interface AuthFlags extends PlaceFlags {
  browser: boolean
}

/** How long a person may take to sign in, in milliseconds. */
const signInMs = 10 * 60_000

/** `tackle mcp add <id> <command…>`: writes a server into a config file, which it creates where there is none. */
export async function addMcpServer(id: string, command: string[], flags: AddServerFlags): Promise<void> {
  const place = await openPlace(flags)
  const [first = ""] = command
  if (command.length === 1 && looksLikeAddress(first)) {
    throw new UsageError(`"${first}" is no address: write https://… or http://…. A program comes behind --.`)
  }
  const server = /^https?:\/\//.test(first) ? remoteServer(command, flags) : localServer(command, flags)
  const parsed = McpConfig.safeParse({ [id]: server })
  if (!parsed.success) throw new UsageError(`This is no MCP server: ${parsed.error.issues[0]?.message}`)
  const path = await addServer(place, flags.user ? "user" : "project", [id, server])
  printLine(`Added ${visible(id)} to ${path}.`)
  if (!flags.user) printLine("It counts once the project is trusted: tackle trust")
}

/** `tackle mcp auth <id>`: the person signs in on the server's page, and what it gives is kept. */
export async function signInToServer(id: string, flags: AuthFlags): Promise<void> {
  const place = await openPlace(flags)
  const server = remoteServerNamed(id, place)
  const { signIn } = await import("../../mcp/client/oauth/sign-in.ts")
  const tokens = await tokensOf(place)
  const open = (url: URL) => {
    printLine(`Sign in to ${visible(id)} here:\n  ${url.href}`)
    if (flags.browser && atTerminal()) showPage(url, place)
  }
  await signIn({ server, tokens, open, signal: AbortSignal.timeout(signInMs) }).catch((error: unknown) => {
    throw TackleError.isInstance(error) ? error : signInFailed(id, error)
  })
  printLine(`Signed in to ${visible(id)}.`)
}

/** The server is not reached, or does not do what signing in takes: nothing of that is ours to mend. */
function signInFailed(id: string, error: unknown): UsageError {
  const cause = error instanceof Error && error.cause !== undefined ? ` (${errorMessage(error.cause)})` : ""
  return new UsageError(
    `Nobody can sign in to ${id} now: ${errorMessage(error)}${cause}. Look at its url in the config. One that takes a key has it in "headers", such as "Authorization": "Bearer …".`,
    error,
  )
}

/** `tackle mcp logout <id>`: what `mcp auth` kept is deleted. */
export async function signOutOfServer(id: string, flags: PlaceFlags): Promise<void> {
  const place = await openPlace(flags)
  const server = remoteServerNamed(id, place)
  const { signOut } = await import("../../mcp/client/oauth/sign-in.ts")
  printLine(
    signOut(server, await tokensOf(place))
      ? `Signed out of ${visible(id)}. The server itself was not told.`
      : `You were not signed in to ${visible(id)}.`,
  )
}

/** `tickets.example.com/mcp` or `ws://…`: no program is written so, and what nobody meant would be started. */
function looksLikeAddress(word: string): boolean {
  return !/^https?:\/\//.test(word) && /^(?:[\w+.-]+:\/\/|[\w-]+(?:\.[\w-]+)+(?::\d+)?\/)/.test(word)
}

function remoteServer([url = "", ...rest]: string[], { env, header }: AddServerFlags): RemoteServer {
  if (rest.length > 0) throw new UsageError("An address has no arguments.")
  if (env) throw new UsageError("--env is for programs; an address has --header.")
  return { type: "remote", url, ...(header ? { headers: pairs(header, "--header") } : {}) }
}

function localServer(command: string[], { env, header }: AddServerFlags) {
  if (header) throw new UsageError("--header is for addresses; a program has --env.")
  const environment = env ? { environment: pairs(env, "--env") } : {}
  return { type: "local" as const, command, ...environment }
}

function pairs(given: readonly string[], flag: string): Record<string, string> {
  return Object.fromEntries(
    given.map((pair) => {
      const at = pair.indexOf("=")
      if (at < 1) throw new UsageError(`${flag} ${pair}: expected name=value.`)
      return [pair.slice(0, at), pair.slice(at + 1)]
    }),
  )
}

function remoteServerNamed(id: string, { config }: Place): RemoteServer {
  const servers = enabledServers(config.config.mcp)
  const found = servers.find((server) => server.id === id)
  if (found?.settings.type === "remote") return found.settings
  if (found) throw new UsageError(`"${id}" is a program, which nobody signs in to.`)
  const names = servers.map(({ id: name, settings }) =>
    settings.type === "remote" ? name : `${name} (a program, which nobody signs in to)`,
  )
  const known = names.length > 0 ? `There are: ${names.join(", ")}.` : "The configuration names none."
  const untrusted =
    config.ignored.length > 0 ? " Those of this project count once it is trusted (--trust)." : ""
  throw new UsageError(
    `There is no MCP server "${id}" that is switched on. ${known}${untrusted} To add one: tackle mcp add ${id} https://…`,
  )
}

async function tokensOf({ dataDirectory }: Place) {
  const { openTokenStore } = await import("../../mcp/client/oauth/token-store.ts")
  return openTokenStore(dataPlaces(dataDirectory).mcpTokens)
}

/** Where it does not open, the person has the address. */
function showPage(url: URL, { worktree, environment }: Place): void {
  const name = process.platform === "darwin" ? "open" : "xdg-open"
  const program = findProgram(name, { worktree, trusted: false, searchPath: environment.PATH ?? "" })
  if (program === undefined) return
  const child = spawn(program, [url.href], { detached: true, stdio: "ignore" })
  child.on("error", () => {})
  child.unref()
}
