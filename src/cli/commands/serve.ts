import { once } from "node:events"
import { realpathSync } from "node:fs"
import { join } from "node:path"
import { type Command, Option } from "commander"
import type { Dispatcher } from "../../scale/dispatcher.ts"
import { UsageError } from "../../util/errors.ts"
import { isLoopback } from "../../util/local-server.ts"
import { interruptible } from "../process/exit.ts"
import { warn } from "../process/notice.ts"
import { printJson, printLine } from "../process/stdout.ts"
import { offline } from "../run/choose-model.ts"
import { type Directories, type DirectoriesFlags, openDirectories } from "../workspace/directories.ts"
import { collect, databaseFlag, formatFlag, jsonFlag, locationFlags, port, positive } from "./flags.ts"

/** Defines `tackle serve`. */
export function defineServe(serve: Command): void {
  locationFlags(serve)
    .addOption(portFlag())
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--socket <path>", "listen on a Unix socket instead of a port")
    .option("--token-file <path>", "file with tokens (default: server-token in the data directory)")
    .addOption(rootFlag())
    .option(
      "--cors <origin>",
      "allow web pages from this origin, such as https://example.com (repeatable)",
      collect,
    )
    .addOption(databaseFlag())
    .option("--dispatch", "let `tackle worker` processes on the same database run the sessions")
    .option("--grace <seconds>", "maximum time for running prompts to finish after a signal", positive, 10)
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action((flags: ServeFlags) => runServe(flags))
}

/** Returns the flag `--port` for a session server. */
export function portFlag(): Option {
  return new Option("--port <n>", "port to listen on; 0 selects a free port").argParser(port).default(8486)
}

/** Returns the flag `--root` for a session server. */
export function rootFlag(): Option {
  return new Option(
    "--root <dir>",
    "serve projects inside this directory (repeatable; default: the current directory)",
  ).argParser(collect)
}

/** Flags for `tackle serve`. */
export interface ServeFlags extends DirectoriesFlags {
  port: number
  host: string
  socket?: string
  /** Path of the token file. The file is created if it does not exist. */
  tokenFile?: string
  /** Origins of web pages that may use the server. */
  cors?: string[]
  /** Whether workers run the sessions. */
  dispatch?: boolean
  /** Time in seconds that running prompts may continue after a signal. */
  grace: number
  format: "text" | "json"
}

/**
 * Runs `tackle serve`, which serves until a signal arrives. A second signal stops the server immediately. `onReady`
 * receives the address that opens the web page.
 */
export async function runServe(flags: ServeFlags, onReady?: (address: string) => void): Promise<void> {
  const { host, socket, cors: origins = [], format } = flags
  for (const origin of origins) checkOrigin(origin)
  await interruptible(async (signal) => {
    const { startServer } = await import("../../server/server.ts")
    const { readTokenFile } = await import("../../server/tokens.ts")
    const { createRunSlots } = await import("../../session/run-slots.ts")
    // Shared by all engines, so that waiting runs of different tenants take turns across engines.
    const runSlots = createRunSlots(maxRunning)
    let tokenFile = flags.tokenFile ?? ""
    let tokens: ReturnType<typeof readTokenFile> = []
    let dispatcher: Dispatcher | undefined
    const directories = await openDirectories(flags, {
      secrets({ dataDirectory }) {
        tokenFile ||= join(dataDirectory, "server-token")
        tokens = readTokenFile(tokenFile)
        return tokens.map(({ token }) => ({ name: "server-token", value: token }))
      },
      options: () => ({ runSlots, dispatch: dispatcher?.enqueue, streamHost: host }),
    })
    const { workspace, roots, onProblem } = directories
    try {
      if (flags.dispatch) dispatcher = await openDispatcher(directories)
      const server = await startServer({
        version: process.env.TACKLE_VERSION ?? "development",
        store: directories.store,
        openEngine: directories.openEngine,
        maxRunning,
        roots,
        tokens,
        host,
        port: flags.port,
        socket,
        pageDirectory,
        origins,
        onProblem,
      })
      const url = socket === undefined ? server.url : `unix:${socket}`
      if (format === "json") printJson({ url, tokenFile: realpathSync(tokenFile) })
      else printLine(`${url} serves ${roots.join(", ")}. The token is in ${tokenFile}. Press Ctrl+C to stop.`)
      if (format === "text" && socket === undefined && !onReady)
        printLine(`Open the web page within 10 minutes: ${server.pageAddress()}`)
      if (format === "text" && workspace.config.config.model === undefined)
        printLine(
          `No model is configured here, so sessions without a model use ${offline}, which needs no key.`,
        )
      if (socket === undefined && !isLoopback(host))
        warn(
          "other machines can connect, and connections are not encrypted. Put a proxy with TLS in front of the server.",
        )
      onReady?.(server.pageAddress())
      if (!signal.aborted) await once(signal, "abort")
      await server.close(flags.grace * 1000)
    } finally {
      await dispatcher?.close()
      await directories.close()
    }
  })
}

/** Maximum number of sessions that run at once. */
const maxRunning = 256

/** Opens the database's job queue. Throws `UsageError` if no database is set. */
export async function openDispatcher(
  { database, onProblem }: Pick<Directories, "database" | "onProblem">,
  options: { maintains?: boolean } = {},
): Promise<Dispatcher> {
  if (database === undefined)
    throw new UsageError(
      "Workers require a PostgreSQL database. Set --database or TACKLE_DATABASE to its URL, such as postgres://user@host/tackle.",
    )
  const { openPgBossDispatcher } = await import("../../scale/pg-boss.ts")
  return openPgBossDispatcher(database, { ...options, onProblem })
}

/** Directory of the web page. In the bundle, this module is in `dist/cli`, next to this directory. */
const pageDirectory = join(import.meta.dirname, "../web")

function checkOrigin(origin: string): void {
  if (URL.canParse(origin) && new URL(origin).origin === origin) return
  throw new UsageError(`--cors "${origin}" is not an origin. Example: https://tackle.example.com`)
}
