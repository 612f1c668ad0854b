import type { Command } from "commander"
import type { ModelsFlags } from "../commands/models.ts"
import { format, place } from "./flags.ts"

/** The command line of `tackle models`. */
export function defineModels(program: Command): void {
  const models = place(program.command("models"))
    .description("configured models, and servers on this machine")
    .addOption(format())
    .option("--forget-tools <model>", "offer tools again to a model whose server refused them (or: all)")
    .action(async (flags: ModelsFlags) => (await import("../commands/index.ts")).models.listModels(flags))
  models
    .command("check")
    .description("what a live server does with tools; takes the flags of `tackle models`")
    .argument("<model>", "as provider/model")
    .action(async (name: string, _flags: object, command: Command) =>
      (await import("../commands/index.ts")).modelsCheck.checkModel(name, command.optsWithGlobals()),
    )
}
