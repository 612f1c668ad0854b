import type { Command } from "commander"
import type { StatsFlags } from "../commands/stats.ts"
import { format, placeAsItIs } from "./flags.ts"

/** The command line of `tackle stats`. */
export function defineStats(program: Command): void {
  placeAsItIs(program.command("stats"))
    .description("tokens, cost and calls of this project's sessions")
    .option("--all", "of every project")
    .addOption(format())
    .action(async (flags: StatsFlags) => (await import("../commands/index.ts")).stats.showStats(flags))
}
