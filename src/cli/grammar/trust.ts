import type { Command } from "commander"
import type { TrustFlags } from "../commands/trust.ts"
import { format, placeAsItIs } from "./flags.ts"

/** The command line of `tackle trust`. */
export function defineTrust(program: Command): void {
  placeAsItIs(program.command("trust"))
    .description("let this project's own config and tools count")
    .argument("[item...]", "only these, as --list names them")
    .option("--yes", "without asking")
    .option("--list", "show what there is, what it enables and what is trusted")
    .option("--revoke", "take the trust back")
    .addOption(format())
    .option("--json", "the same as --format json")
    .action(async (items: string[], flags: TrustFlags) =>
      (await import("../commands/index.ts")).trust.trustProject(items, flags),
    )
}
