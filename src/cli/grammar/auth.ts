import type { Command } from "commander"
import type { LoginFlags } from "../commands/auth.ts"
import type { FormatFlags, PlaceFlags } from "../place.ts"
import { format, place, placeAsItIs } from "./flags.ts"

/** The command line of `tackle auth …`. */
export function defineAuth(program: Command): void {
  const auth = program.command("auth").description("sign in to providers of models")
  place(auth.command("login"))
    .description("keep a key, or sign in as a plugin for the provider has it")
    .argument("<provider>", "the provider, as models begin with it")
    .option("--method <name>", "which of the plugin's ways")
    .action(async (provider: string, flags: LoginFlags) =>
      (await import("../commands/index.ts")).auth.logIn(provider, flags),
    )
  place(auth.command("list"))
    .description("the providers that you signed in to, and the plugins' ways to do so")
    .addOption(format())
    .action(async (flags: FormatFlags) => (await import("../commands/index.ts")).auth.listLogins(flags))
  placeAsItIs(auth.command("logout"))
    .description("forget what was kept for a provider")
    .argument("<provider>", "the provider")
    .action(async (provider: string, flags: PlaceFlags) =>
      (await import("../commands/index.ts")).auth.logOut(provider, flags),
    )
}
