import { once } from "node:events"
import { existsSync, realpathSync, statSync } from "node:fs"
import { join, resolve } from "node:path"
import { type Command, Option } from "commander"
import { UsageError } from "../../util/errors.ts"
import { isLoopback } from "../../util/local-server.ts"
import { interruptible } from "../process/exit.ts"
import { warn } from "../process/notice.ts"
import { printJson, printLine } from "../process/stdout.ts"
import { offline } from "../run/choose-model.ts"
import { openTackle, reportProblem } from "../workspace/engine.ts"
import { openWorkspace, type WorkspaceFlags } from "../workspace/workspace.ts"
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
      "allow web pages of this origin, such as https://example.com (repeatable)",
      collect,
    )
    .addOption(databaseFlag())
    .option("--grace <seconds>", "how long running prompts may continue after a signal", positive, 10)
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action((flags: ServeFlags) => runServe(flags))
}

/** Returns the flag `--port` of a server for sessions. */
export function portFlag(): Option {
  return new Option("--port <n>", "port to listen on; 0 selects a free port").argParser(port).default(8486)
}

/** Returns the flag `--root` of a server for sessions. */
export function rootFlag(): Option {
  return new Option(
    "--root <dir>",
    "serve projects inside this directory (repeatable; default: the current directory)",
  ).argParser(collect)
}

/** Flags of `tackle serve`. */
export interface ServeFlags extends Omit<WorkspaceFlags, "trust"> {
  port: number
  host: string
  socket?: string
  /** Path of the token file. It is created if it is missing. */
  tokenFile?: string
  /** Directories with the projects that the server may open. */
  root?: string[]
  /** Origins of web pages that may use the server. */
  cors?: string[]
  /** URL of a PostgreSQL database. */
  database?: string
  /** Time in seconds that running prompts may continue after a signal. */
  grace: number
  format: "text" | "json"
}

/**
 * Runs `tackle serve`, which serves until SIGINT or SIGTERM. A second signal ends it immediately. `onReady` receives the
 * address that opens the web page.
 */
export async function runServe(flags: ServeFlags, onReady?: (address: string) => void): Promise<void> {
  const { host, socket, cors: origins = [], format } = flags
  for (const origin of origins) checkOrigin(origin)
  await interruptible(async (signal) => {
    const { startServer } = await import("../../server/server.ts")
    const { readTokenFile } = await import("../../server/tokens.ts")
    const { openDatabase } = await import("../../engine/open-database.ts")
    const { maskStore } = await import("../../session/masked-store.ts")
    const { dataPaths } = await import("../../engine/data-directory.ts")
    const { databaseSecrets } = await import("../../engine/secrets.ts")
    // An engine removes the keys of its providers from the environment of this process.
    const environment = { ...process.env }
    const workspace = await openWorkspace(flags)
    const roots = flags.root?.map(rootOf) ?? [workspace.directory]
    const tokenFile = flags.tokenFile ?? join(workspace.dataDirectory, "server-token")
    const tokens = readTokenFile(tokenFile)
    const secrets = tokens.map(({ token }) => ({ name: "server-token", value: token }))
    const database = flags.database ?? environment.TACKLE_DATABASE
    const { createRunSlots } = await import("../../session/run-slots.ts")
    // Shared by all engines, so that the waiting runs of different tenants take turns.
    const runSlots = createRunSlots(maxRunning)
    const store = await openDatabase({ database, file: dataPaths(workspace.dataDirectory).database })
    if (database !== undefined) workspace.mask.add(databaseSecrets(database))
    try {
      const server = await startServer({
        version: process.env.TACKLE_VERSION ?? "development",
        // Stored records may contain secrets that were configured only after the records were written.
        store: maskStore(store, workspace.mask),
        async openEngine(directory) {
          const own = await openWorkspace({ ...flags, dir: directory }, environment)
          own.mask.add(secrets)
          if (database !== undefined) own.mask.add(databaseSecrets(database))
          const { model = offline } = own.config.config
          return openTackle(own, {}, { model, store, runSlots, approvals: true, questions: true })
        },
        maxRunning,
        roots,
        tokens,
        host,
        port: flags.port,
        socket,
        pageDirectory,
        origins,
        onProblem: (message, error) => void reportProblem(workspace, message, error),
      })
      const url = socket === undefined ? server.url : `unix:${socket}`
      if (format === "json") printJson({ url, tokenFile: realpathSync(tokenFile) })
      else printLine(`${url} serves ${roots.join(", ")}. The token is in ${tokenFile}. Press Ctrl-C to stop.`)
      if (format === "text" && socket === undefined && !onReady)
        printLine(`Open the web page within 10 minutes: ${server.pageAddress()}`)
      if (format === "text" && workspace.config.config.model === undefined)
        printLine(`No model is configured here: sessions without a model use ${offline}, which needs no key.`)
      if (socket === undefined && !isLoopback(host))
        warn(
          "other machines can connect, and connections are not encrypted. Put a proxy with TLS in front of the server.",
        )
      onReady?.(server.pageAddress())
      if (!signal.aborted) await once(signal, "abort")
      await server.close(flags.grace * 1000)
    } finally {
      await store.close()
    }
  })
}

/** Maximum number of sessions that run at once. */
const maxRunning = 256

/** The command is one directory, `dist/cli`, beside the page. */
const pageDirectory = join(import.meta.dirname, "../web")

function rootOf(given: string): string {
  const path = resolve(given)
  if (!existsSync(path)) throw new UsageError(`The directory ${path} does not exist (--root).`)
  if (!statSync(path).isDirectory()) throw new UsageError(`${path} is not a directory (--root).`)
  return realpathSync(path)
}

function checkOrigin(origin: string): void {
  if (URL.canParse(origin) && new URL(origin).origin === origin) return
  throw new UsageError(`--cors "${origin}" is not an origin. Example: https://tackle.example.com`)
}
