import type { Command } from "commander"
import type { FormatFlags } from "../place.ts"
import { format, place } from "./flags.ts"

/** The command line of `tackle doctor`. */
export function defineDoctor(program: Command): void {
  place(program.command("doctor"))
    .description("check that everything Tackle needs is there")
    .addOption(format())
    .action(async (flags: FormatFlags) => (await import("../commands/index.ts")).doctor.checkHealth(flags))
}
