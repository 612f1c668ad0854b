import { type Command, InvalidArgumentError, Option } from "commander"
import type { AgentListFlags } from "../commands/agent.ts"
import type { AgentCreateFlags } from "../commands/agent-create.ts"
import type { FormatFlags } from "../place.ts"
import { format, place, positive } from "./flags.ts"

/** The command line of `tackle agent …`. */
export function defineAgent(program: Command): void {
  const agent = program.command("agent").description("who works: prompts, models and what they may do")
  place(agent.command("list"))
    .description("the agents there are, and where they come from")
    .option("--all", "hidden ones too")
    .addOption(format())
    .action(async (flags: AgentListFlags) => (await import("../commands/index.ts")).agent.listAgents(flags))
  place(agent.command("show"))
    .description("one agent with its prompt, tools and rules")
    .argument("<name>", "the agent")
    .addOption(format())
    .action(async (name: string, flags: FormatFlags) =>
      (await import("../commands/index.ts")).agent.showAgent(name, flags),
    )
  place(agent.command("create"))
    .description("write the Markdown file of a new agent; asks at a terminal for what is missing")
    .argument("[name]", "the agent")
    .option("--description <text>", "what it is for: other agents choose by it")
    .option("--prompt <text>", 'its system prompt; "-" reads stdin')
    .addOption(new Option("--mode <mode>", "who may start it").choices(["primary", "subagent", "all"]))
    .option("-m, --model <name>", "the model, as provider/model")
    .option("--temperature <number>", "sampling temperature", number)
    .option("--steps <n>", "steps of the model in one prompt", positive)
    .option("--tools <ids>", "the tools it is left with, with commas (default: all)")
    .option("--user", "for every project of yours, not for this one alone")
    .addOption(format())
    .action(async (name: string | undefined, flags: AgentCreateFlags) =>
      (await import("../commands/index.ts")).agentCreate.createAgent(name, flags),
    )
}

function number(value: string): number {
  const read = Number(value)
  if (value.trim() === "" || !Number.isFinite(read)) throw new InvalidArgumentError("It must be a number.")
  return read
}
