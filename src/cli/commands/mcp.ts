import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { Writable } from "node:stream"
import { stripVTControlCharacters } from "node:util"
import type { Command } from "commander"
import { addServer } from "../../config/add-server.ts"
import { dataPaths } from "../../engine/data-directory.ts"
import { enabledServers, McpConfig, type RemoteServer } from "../../mcp/client/config.ts"
import type { McpServerStatus } from "../../mcp/client/pool.ts"
import type { ConnectionOptions } from "../../mcp/server/connection.ts"
import { errorMessage, TackleError, UsageError } from "../../util/errors.ts"
import { counted } from "../../util/words.ts"
import { oneLine, visible, wrapped } from "../../view/visible.ts"
import { exitCode, interruptible } from "../process/exit.ts"
import { warn } from "../process/notice.ts"
import { openInBrowser } from "../process/open-in-browser.ts"
import { atTerminal } from "../process/question.ts"
import { printHint, printJson, printLine, stdout } from "../process/stdout.ts"
import { createLiveRegion } from "../view/live-region.ts"
import { describeRequest } from "../view/request.ts"
import { openTackle, problemsExceptServers, reportProblem } from "../workspace/engine.ts"
import { keepTrust } from "../workspace/recheck-trust.ts"
import type { RuleFlags } from "../workspace/rules.ts"
import {
  type FormatFlags,
  openWorkspace,
  type Workspace,
  type WorkspaceFlags,
} from "../workspace/workspace.ts"
import { collect, formatFlag, jsonFlag, locationFlags, names, port, positive, projectFlags } from "./flags.ts"

/** Defines `tackle mcp` and its subcommands. */
export function defineMcp(mcp: Command): void {
  projectFlags(mcp.command("list"))
    .description("connect to each MCP server and show its tools, or why it is unavailable")
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(listMcpServers)
  locationFlags(mcp.command("add"))
    .description("add an MCP server to the project's config: a URL, or a program after --")
    .argument("<id>", "id for the server; the names of its tools begin with this id")
    .argument("<command...>", "URL, or program with its arguments")
    .option("--user", "add the server to your own config, for all projects")
    .option("--env <name=value>", "environment variable for the program (repeatable)", collect)
    .option("--header <name=value>", "header for each request (repeatable)", collect)
    .action(addMcpServer)
  projectFlags(mcp.command("auth"))
    .description("sign in to an MCP server in your browser")
    .argument("<id>", "id of the server in the config")
    .option("--no-browser", "print the URL without opening a browser")
    .action(signInToServer)
  projectFlags(mcp.command("logout"))
    .description("delete the stored tokens for an MCP server")
    .argument("<id>", "id of the server in the config")
    .action(signOutOfServer)
  projectFlags(mcp.command("serve"))
    .description("run as an MCP server that offers Tackle's tools, subject to its rules")
    .option(
      "--agent <name>",
      "agent whose rules and tools apply (default: default_agent in the config, or build)",
    )
    .option("--tools <ids>", "offer only these tools, comma-separated", names)
    .option("--allow <rule>", "allow permission[:pattern] without asking (repeatable)", collect)
    .option("--deny <rule>", "deny permission[:pattern] (repeatable)", collect)
    .option("--sandboxed", "run commands in the sandbox without asking")
    .option("--http", "serve streamable HTTP (default: stdin and stdout)")
    .option("--port <n>", "with --http: port to listen on; 0 selects a free port (default: 8485)", port)
    .option("--host <address>", "with --http: address to listen on (default: 127.0.0.1)")
    .option(
      "--stream <seconds>",
      "with --http: end a call's stream after this time; the client reconnects",
      positive,
    )
    .option(
      "--key <key>",
      "with --http: key that clients must send (prefer setting TACKLE_MCP_KEY; default: a random key)",
    )
    .option(
      "--trust-client",
      "with --http: accept the clients' answers to permission requests and questions as yours",
    )
    .action(serveMcp)
}

/** Time limit in ms for connecting to each server. A server's `timeout` setting takes precedence. */
const limitMs = 10_000

/**
 * Runs `tackle mcp list`, which connects to every enabled MCP server. Shows each server's tools, or why the server is
 * unavailable, as soon as the server responds or fails. JSON is printed when all servers have responded or failed.
 */
export async function listMcpServers(flags: FormatFlags): Promise<void> {
  const { servers, config } = await interruptible(async (signal) => {
    const workspace = await openWorkspace(flags)
    const tackle = await openTackle(workspace, {}, { onProblem: problemsExceptServers(workspace) })
    const waiting = new Set(enabledServers(workspace.config.config.mcp).map(({ id }) => id))
    const status = createLiveRegion(process.stderr)
    const since = status.clock()
    const tellWaiting = () => {
      const text = `waiting for ${[...waiting].join(", ")}`
      status.set({ activities: waiting.size === 0 ? [] : [{ text, since }] })
    }
    tellWaiting()
    try {
      const look = (server: McpServerStatus) => {
        // After an interrupt, the status of a pending server is unknown.
        if (signal.aborted) return
        status.clear()
        waiting.delete(server.id)
        if (flags.format === "text") show(server)
        tellWaiting()
      }
      const servers = await tackle.mcpServers({ signal, limitMs, onStatus: look })
      return { servers, config: workspace.config }
    } finally {
      status.end()
      await tackle.close()
    }
  })
  if (servers.some(({ status }) => status === "failed")) process.exitCode = exitCode.failed
  if (flags.format === "json") return printJson({ servers })
  if (servers.length > 0) return
  if (config.ignored.length > 0) printHint(noTrustedServers)
  else printLine(Object.keys(config.config.mcp ?? {}).length > 0 ? allDisabled : noServers)
}

const allDisabled = "All MCP servers are disabled."
const noServers = 'No MCP servers are configured. Add them under "mcp" in the config.'
const noTrustedServers =
  "No MCP servers are available. If the project defines servers, trust the project to use them: tackle trust"

function show({ id, status, tools, problem }: McpServerStatus): void {
  const room = process.stdout.isTTY ? process.stdout.columns - 2 : Number.POSITIVE_INFINITY
  const count = counted(tools.length, "tool")
  printLine(`${oneLine(id, room)}  ${status}${status === "connected" ? `, ${count}` : ""}`)
  if (problem !== undefined) for (const line of wrapped(problem, room)) printLine(`  ${line}`)
  for (const tool of tools) {
    const left = room - tool.id.length - 2
    printLine(`  ${tool.id}  ${oneLine(tool.description, Math.max(left, shortest))}`)
  }
}

/** Minimum width of a description, in columns. */
const shortest = 20

/** Flags for `tackle mcp add`. `env` is for a program and `header` for a URL. Each value has the form `name=value`. */
export interface AddServerFlags extends WorkspaceFlags {
  /** If true, the server is added to the user's config instead of the project's. */
  user?: boolean
  env?: string[]
  header?: string[]
}

/** Flags for `tackle mcp auth`. With `--no-browser`, `browser` is false and the command does not open the URL. */
export interface AuthFlags extends WorkspaceFlags {
  browser: boolean
}

/** Time limit in ms for signing in. */
const signInMs = 10 * 60_000

/** Runs `tackle mcp add <id> <command…>`, which adds a server to a config file. Creates the file if needed. */
export async function addMcpServer(id: string, command: string[], flags: AddServerFlags): Promise<void> {
  const workspace = await openWorkspace(flags)
  const [first = ""] = command
  if (command.length === 1 && looksLikeAddress(first)) {
    throw new UsageError(
      `"${first}" is not a URL. A URL starts with https:// or http://. To add a program, start its path with ./ or /.`,
    )
  }
  const server = /^https?:\/\//.test(first) ? remoteServer(command, flags) : localServer(command, flags)
  const parsed = McpConfig.safeParse({ [id]: server })
  if (!parsed.success) throw new UsageError(`Invalid MCP server: ${parsed.error.issues[0]?.message}`)
  const path = await addServer(workspace, flags.user ? "user" : "project", [id, server])
  printLine(`Added ${visible(id)} to ${path}.`)
  if (!flags.user && !(await keepTrust(workspace, path)))
    printHint("To use the server, trust the project: tackle trust")
}

/** Runs `tackle mcp auth <id>`, which signs in on the server's page and stores the tokens. */
export async function signInToServer(id: string, flags: AuthFlags): Promise<void> {
  const workspace = await openWorkspace(flags)
  const server = remoteServerNamed(id, workspace)
  const { signIn } = await import("../../mcp/client/oauth/sign-in.ts")
  const tokens = await tokensOf(workspace)
  const open = (url: URL) => {
    printLine(`To sign in to ${visible(id)}, open this page:\n  ${url.href}`)
    if (flags.browser && atTerminal()) showPage(url, workspace)
  }
  const signal = AbortSignal.timeout(signInMs)
  await signIn({ server, tokens, open, signal }).catch((error: unknown) => {
    if (signal.aborted)
      throw new UsageError(
        `You did not sign in to ${id} within ${signInMs / 60_000} minutes. Run the command again.`,
      )
    throw TackleError.isInstance(error) ? error : signInFailed(id, error)
  })
  printLine(`Signed in to ${visible(id)}.`)
}

/** Returns the error for a failed sign-in. Usually, the server is unreachable or does not support signing in. */
function signInFailed(id: string, error: unknown): UsageError {
  const cause = error instanceof Error && error.cause !== undefined ? ` (${errorMessage(error.cause)})` : ""
  return new UsageError(
    `Cannot sign in to ${id}: ${errorMessage(error)}${cause}. Check its "url" in the config. If the server expects a key, set it in "headers", such as "Authorization": "Bearer …".`,
    error,
  )
}

/** Runs `tackle mcp logout <id>`, which deletes the tokens that `mcp auth` stored. */
export async function signOutOfServer(id: string, flags: WorkspaceFlags): Promise<void> {
  const workspace = await openWorkspace(flags)
  const server = remoteServerNamed(id, workspace)
  const { signOut } = await import("../../mcp/client/oauth/sign-in.ts")
  printLine(
    signOut(server, await tokensOf(workspace))
      ? `Signed out of ${visible(id)}. The server was not notified.`
      : `You were not signed in to ${visible(id)}.`,
  )
}

/**
 * Returns true if a word looks like a URL without http:// or https://, such as `tickets.example.com/mcp` or `ws://…`.
 * Without this check, Tackle would try to start the word as a program.
 */
function looksLikeAddress(word: string): boolean {
  return !/^https?:\/\//.test(word) && /^(?:[\w+.-]+:\/\/|[\w-]+(?:\.[\w-]+)+(?::\d+)?\/)/.test(word)
}

function remoteServer([url = "", ...rest]: string[], { env, header }: AddServerFlags): RemoteServer {
  if (!URL.canParse(url))
    throw new UsageError(`"${url}" is not a valid URL. Example: https://example.com/mcp`)
  if (rest.length > 0) throw new UsageError("A URL does not accept arguments.")
  if (env) throw new UsageError("--env is for programs. Use --header for a URL.")
  return { type: "remote", url, ...(header ? { headers: pairs(header, "--header") } : {}) }
}

function localServer(command: string[], { env, header }: AddServerFlags) {
  if (header) throw new UsageError("--header is for URLs. Use --env for a program.")
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

function remoteServerNamed(id: string, { config }: Workspace): RemoteServer {
  const servers = enabledServers(config.config.mcp)
  const found = servers.find((server) => server.id === id)
  if (found?.settings.type === "remote") return found.settings
  if (found) throw new UsageError(`"${id}" is a local program. Only remote servers support signing in.`)
  const names = servers.map(({ id: name, settings }) =>
    settings.type === "remote" ? name : `${name} (a local program, without sign-in)`,
  )
  const known = names.length > 0 ? `Enabled servers: ${names.join(", ")}.` : "No servers are enabled."
  const untrusted =
    config.ignored.length > 0
      ? " To use the servers that the project's config defines, trust the project with --trust."
      : ""
  throw new UsageError(
    `The MCP server "${id}" does not exist or is disabled. ${known}${untrusted} To add one: tackle mcp add ${id} https://…`,
  )
}

async function tokensOf({ dataDirectory }: Workspace) {
  const { openTokenStore } = await import("../../mcp/client/oauth/token-store.ts")
  return openTokenStore(dataPaths(dataDirectory).mcpTokens)
}

/** Opens the page in a browser. Errors are ignored, because the URL is also printed. */
function showPage(url: URL, { worktree, environment }: Workspace): void {
  openInBrowser(url.href, { worktree, searchPath: environment.PATH ?? "" })?.on("error", () => {})
}

/** Flags for `tackle mcp serve`. `port`, `host`, `stream`, `key` and `trustClient` are rejected without `http`. */
export interface ServeFlags extends WorkspaceFlags, RuleFlags {
  agent?: string
  tools?: string[]
  http?: boolean
  port?: number
  host?: string
  /** Time in seconds after which a call's stream ends and the client reconnects. */
  stream?: number
  /** Key that clients must send. Default: `TACKLE_MCP_KEY`. If neither is set, a random key is used and printed. */
  key?: string
  /**
   * Whether to accept the clients' answers to forms as the user's answers. Not needed on stdin and stdout, because the
   * user's own client starts the server.
   */
  trustClient?: boolean
}

/**
 * Runs `tackle mcp serve`, which serves until a signal arrives. Without `--http`, serves on stdin and stdout, and also
 * stops when stdin ends.
 */
export async function serveMcp(flags: ServeFlags): Promise<void> {
  assertForHttp(flags)
  await interruptible(async (signal) => {
    const { assertChosenTools } = await import("../../mcp/server/tools.ts")
    const { createWarnings } = await import("../../mcp/server/client-log.ts")
    const workspace = await openWorkspace(flags)
    const warnings = createWarnings()
    const tackle = await openTackle(workspace, flags, {
      onProblem: (message, error) =>
        warnings.send({ level: "error", text: reportProblem(workspace, message, error) }),
    })
    const { agent, tools } = flags
    const chosen = { agent, tools }
    const options: ConnectionOptions = {
      tackle,
      ...chosen,
      trustClient: !flags.http || flags.trustClient === true,
      version: process.env.TACKLE_VERSION ?? "development",
      describe: (request) =>
        stripVTControlCharacters(describeRequest(request, { worktree: tackle.worktree, whole: true })),
      warnings,
      onProblem: (message, error) => workspace.log.write("warn", message, { error: errorMessage(error) }),
    }
    try {
      await assertChosenTools(tackle, { ...chosen, signal })
      await (flags.http ? serveHttp(flags, options, signal) : serveStdio(options, signal))
    } finally {
      await tackle.close()
    }
  })
}

/** Notice for a user who starts the command in a terminal. */
const terminalNotice =
  'this command speaks MCP on stdin and stdout. Configure your client to run "tackle" with the arguments "mcp", "serve", or use --http to serve a URL. Press Ctrl+D to stop.'

async function serveStdio(options: ConnectionOptions, signal: AbortSignal): Promise<void> {
  if (process.stdin.isTTY) warn(terminalNotice)
  const { serveStdio } = await import("../../mcp/server/connection.ts")
  await serveStdio({ ...options, input: process.stdin, output: protocolOutput(), signal })
}

async function serveHttp(
  { host, port = defaultPort, stream, key }: ServeFlags,
  connection: ConnectionOptions,
  signal: AbortSignal,
): Promise<void> {
  const { startHttp } = await import("../../mcp/server/http.ts")
  const chosenKey = key ?? (process.env.TACKLE_MCP_KEY || undefined)
  const requiredKey = chosenKey ?? randomBytes(32).toString("base64url")
  const server = await startHttp({
    connection: { ...connection, streamMs: stream === undefined ? undefined : stream * 1000 },
    port,
    host,
    key: requiredKey,
  })
  try {
    printLine(`${server.url} offers the tools for ${connection.tackle.worktree}. Press Ctrl+C to stop.`)
    if (chosenKey === undefined)
      printLine(
        `Clients must send the header "Authorization: Bearer ${requiredKey}". Set TACKLE_MCP_KEY to choose the key.`,
      )
    if (!signal.aborted) await once(signal, "abort")
  } finally {
    await server.close()
  }
}

const defaultPort = 8485

/** Returns a stream to stdout. Nothing else in this process writes to stdout. */
function protocolOutput(): Writable {
  return new Writable({
    decodeStrings: false,
    write: (chunk: string, _encoding, done) => {
      stdout.write(chunk)
      done()
    },
  })
}

function assertForHttp({ http, port, host, stream, key, trustClient }: ServeFlags): void {
  if (!http && [port, host, stream, key, trustClient].some((flag) => flag !== undefined))
    throw new UsageError("--port, --host, --stream, --key and --trust-client require --http.")
  if (key === "") throw new UsageError("--key is empty. Pass a key, or omit --key to use a random key.")
}
