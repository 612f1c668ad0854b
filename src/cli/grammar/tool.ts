import type { Command } from "commander"
import type { ToolCallFlags, ToolListFlags } from "../commands/tool.ts"
import type { PlaceFlags } from "../place.ts"
import { collect, format, place } from "./flags.ts"

/** The command line of `tackle tool …`. */
export function defineTool(program: Command): void {
  const tool = program.command("tool").description("list and call tools")
  place(tool.command("list"))
    .description("the tools that the agent and model are offered")
    .option("--all", "every tool, with the reason where one is not offered")
    .option("-m, --model <name>", "for this model")
    .option("--agent <name>", "for this agent")
    .addOption(format())
    .action(async (flags: ToolListFlags) => (await import("../commands/index.ts")).tool.listTools(flags))
  place(tool.command("schema"))
    .description("a tool's description and JSON Schema, as a model is sent it")
    .argument("<id>", "the tool")
    .action(async (id: string, flags: PlaceFlags) =>
      (await import("../commands/index.ts")).tool.showSchema(id, flags),
    )
  place(tool.command("call"))
    .description("run one tool, without a model")
    .argument("<id>", "the tool")
    .argument("[input]", "its arguments as JSON", "{}")
    .option("--agent <name>", "with the rules of this agent")
    .option("--auto", "answer every question once with yes")
    .option("--allow <rule>", "allow a permission[:pattern]", collect)
    .option("--deny <rule>", "deny a permission[:pattern]", collect)
    .addOption(format())
    .action(async (id: string, input: string, flags: ToolCallFlags) =>
      (await import("../commands/index.ts")).tool.callTool(id, input, flags),
    )
}
