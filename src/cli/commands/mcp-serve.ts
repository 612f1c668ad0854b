import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { Writable } from "node:stream"
import { stripVTControlCharacters } from "node:util"
import type { ConnectionOptions } from "../../mcp/server/connection.ts"
import { errorMessage, UsageError } from "../../util/errors.ts"
import { interruptible } from "../process/exit.ts"
import { warn } from "../process/notice.ts"
import { printLine, stdout } from "../process/stdout.ts"
import { describeRequest } from "../view/request.ts"
import { openTackle, reportProblem } from "../workspace/engine.ts"
import type { RuleFlags } from "../workspace/rules.ts"
import { openWorkspace, type WorkspaceFlags } from "../workspace/workspace.ts"

/** Flags of `tackle mcp serve`. `port`, `host`, `stream`, `key` and `trustClient` are rejected without `http`. */
export interface ServeFlags extends WorkspaceFlags, RuleFlags {
  agent?: string
  tools?: string[]
  http?: boolean
  port?: number
  host?: string
  /** Time in seconds after which the stream of a call ends and the client reconnects. */
  stream?: number
  /** Key that clients must send. Default: `TACKLE_MCP_KEY`. If neither is set, a random key is printed. */
  key?: string
  /**
   * Accepts the clients' answers to forms as the user's answers. Not needed on stdin and stdout, where the user's own
   * agent starts the server.
   */
  trustClient?: boolean
}

/**
 * Runs `tackle mcp serve`, which serves on stdin and stdout until stdin ends, or with `--http` until SIGINT or SIGTERM.
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
const atTerminal =
  'this command speaks MCP on stdin and stdout. Configure your client to run "tackle" with the arguments "mcp", "serve", or use --http to serve a URL. Press Ctrl-D to stop.'

async function serveStdio(options: ConnectionOptions, signal: AbortSignal): Promise<void> {
  if (process.stdin.isTTY) warn(atTerminal)
  const { serveStdio } = await import("../../mcp/server/stdio.ts")
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
    printLine(`${server.url} offers the tools for ${connection.tackle.worktree}. Press Ctrl-C to stop.`)
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
  if (key === "") throw new UsageError("--key is empty. Pass a key, or omit it to get a random one.")
}
