import { type Command, Option } from "commander"
import type { GatewayFlags } from "../commands/gateway.ts"
import { port, positive } from "./flags.ts"

/** The command line of `tackle gateway`. */
export function defineGateway(program: Command): void {
  program
    .command("gateway")
    .description("give tool calling to a chat completions API")
    .requiredOption("--upstream <url>", "its base URL, such as http://127.0.0.1:8000/v1")
    .addOption(
      new Option("--policy <name>", "what is done with tools")
        .choices(["auto", "native", "synthetic", "reject", "ignore"])
        .default("auto"),
    )
    .addOption(
      new Option("--dialect <name>", "how the model is told to write calls (default: by its name)").choices([
        "hermes",
        "json-fence",
        "llama",
        "mistral",
        "pythonic",
        "xml",
      ]),
    )
    .option("--port <n>", "0: any free one", port, 8484)
    .option("--host <address>", "any other than this machine's own needs a key", "127.0.0.1")
    .option("--key <key>", "what clients have to send (better: TACKLE_GATEWAY_KEY)")
    .option("--timeout <seconds>", "how long the upstream may be silent (default 600)", positive)
    .option("--verbose", "tell of each request that fails, on stderr")
    .action(async (flags: GatewayFlags) => (await import("../commands/index.ts")).gateway.runGateway(flags))
}
