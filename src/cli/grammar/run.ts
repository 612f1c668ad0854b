import { type Command, Option } from "commander"
import type { RunFlags } from "../commands/run.ts"
import { amount, collect, format, place, positive } from "./flags.ts"

/** The command line of `tackle run`. */
export function defineRun(program: Command): void {
  place(program.command("run"))
    .description("give the agent a prompt and let it work")
    .argument("[message...]", 'what to do, or /name and arguments for a command; "-" or nothing reads stdin')
    .option(
      "-m, --model <name>",
      "the model, as provider/model; a session that goes on keeps it from then on",
    )
    .option("--agent <name>", "the agent (default build)")
    .option("-s, --session <id>", "go on with this session")
    .addOption(
      new Option("-c, --continue", "go on with the last session of this project").conflicts("session"),
    )
    .option("--fork", "with -s or -c: go on with a copy and leave the session as it is")
    .addOption(format())
    .option("--auto", "answer every question once with yes; denials, loops and protected files stay refused")
    .option("--allow <rule>", "allow a permission[:pattern], such as 'bash:git *'", collect)
    .option("--deny <rule>", "deny a permission[:pattern]", collect)
    .option("-f, --file <path>", "attach a file", collect)
    .option("--max-steps <n>", "steps of the model before the run is stopped", positive)
    .option("--max-tokens <n>", "tokens of the run before it is stopped", positive)
    .option("--max-cost <dollars>", "US dollars of the run before it is stopped", amount)
    .option("--output-schema <file>", "answer with JSON that fits this JSON Schema, on stdout")
    .option("--timeout <seconds>", "interrupt the run after this time", positive)
    .addOption(
      new Option("--record <file>", "write down what is asked and answered, for --replay").conflicts([
        "session",
        "continue",
      ]),
    )
    .addOption(
      new Option("--replay <file>", "run a recording again, without a model or any work").conflicts([
        ...["record", "session", "continue", "agent", "model", "file", "outputSchema"],
        ...["maxSteps", "maxTokens", "maxCost", "allow", "deny"],
      ]),
    )
    .action(async (message: string[], flags: RunFlags) =>
      (await import("../commands/run.ts")).run(message, flags),
    )
}
