import { once } from "node:events"
import { type Command, Option } from "commander"
import type { ToolCalling } from "../../model/model.ts"
import { type DialectName, dialectNames } from "../../synthetic/dialect.ts"
import { interruptible } from "../process/exit.ts"
import { warn } from "../process/notice.ts"
import { printLine } from "../process/stdout.ts"
import { port, positive } from "./flags.ts"

/** Defines `tackle gateway`. */
export function defineGateway(gateway: Command): void {
  gateway
    .requiredOption("--upstream <url>", "base URL of the upstream's API, such as http://127.0.0.1:8000/v1")
    .addOption(
      new Option("--policy <name>", "what to do with the tools in a request")
        .choices(["auto", "native", "synthetic", "reject", "ignore"])
        .default("auto"),
    )
    .addOption(
      new Option(
        "--dialect <name>",
        "format of tool calls in the model's text (default: chosen by model name)",
      ).choices(dialectNames),
    )
    .option("--port <n>", "port to listen on; 0 selects a free port", port, 8484)
    .option(
      "--host <address>",
      "address to listen on; any address except loopback requires a key",
      "127.0.0.1",
    )
    .option("--key <key>", "key that clients must send (prefer setting TACKLE_GATEWAY_KEY)")
    .option("--timeout <seconds>", "idle timeout for the upstream (default: 600)", positive)
    .option("--verbose", "report each failed request on stderr")
    .action(runGateway)
}

/** Flags for `tackle gateway`. The key for the upstream comes from `TACKLE_UPSTREAM_KEY`. */
export interface GatewayFlags {
  upstream: string
  policy: ToolCalling
  dialect?: DialectName
  host: string
  port: number
  /** Key that clients must send. Default: `TACKLE_GATEWAY_KEY`. If neither is set, no key is required. */
  key?: string
  /** Idle timeout for the upstream, in seconds. */
  timeout?: number
  verbose?: boolean
}

/** Time in ms within which responses must finish after the first signal. */
const graceMs = 10_000

/** Runs `tackle gateway`, which serves until a signal arrives. A second signal stops the gateway immediately. */
export async function runGateway(flags: GatewayFlags): Promise<void> {
  const { startGateway } = await import("../../gateway/server.ts")
  const { httpFetch } = await import("../../model/http-fetch.ts")
  const { useNetworkSettings } = await import("../../model/proxy.ts")
  const restoreNetwork = await useNetworkSettings(process.env)
  const key = flags.key ?? process.env.TACKLE_GATEWAY_KEY
  const upstreamKey = process.env.TACKLE_UPSTREAM_KEY
  const gateway = await startGateway({
    upstream: flags.upstream,
    policy: flags.policy,
    host: flags.host,
    port: flags.port,
    dialect: flags.dialect,
    key: key || undefined,
    upstreamKey: upstreamKey || undefined,
    silenceMs: flags.timeout ? flags.timeout * 1_000 : undefined,
    fetch: httpFetch,
    onFailure: flags.verbose ? warn : undefined,
  })
  printLine(
    `${gateway.url} serves ${flags.upstream} with the tool policy "${flags.policy}". Press Ctrl+C to stop.`,
  )
  await interruptible(async (signal) => {
    if (!signal.aborted) await once(signal, "abort")
    await gateway.close(graceMs)
  })
  restoreNetwork()
}
