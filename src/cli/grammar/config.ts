import type { Command } from "commander"
import type { FormatFlags } from "../place.ts"
import { format, place } from "./flags.ts"

/** The command line of `tackle config …`. */
export function defineConfig(program: Command): void {
  const config = program.command("config").description("show the configuration")
  place(config.command("show"))
    .description("the merged configuration, its files and rules")
    .addOption(format())
    .action(async (flags: FormatFlags) => (await import("../commands/index.ts")).config.showConfig(flags))
  config
    .command("schema")
    .description("the JSON Schema of a config file, for editors")
    .action(async () => (await import("../commands/index.ts")).config.showSchema())
}
