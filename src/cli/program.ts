import { writeSync } from "node:fs"
import { Command, CommanderError, InvalidArgumentError, Option } from "commander"
import type { GatewayFlags } from "./commands/gateway.ts"
import type { ModelsFlags } from "./commands/models.ts"
import type { CheckFlags } from "./commands/permission.ts"
import type { RunFlags } from "./commands/run.ts"
import type {
  SessionExportFlags,
  SessionForkFlags,
  SessionImportFlags,
  SessionListFlags,
} from "./commands/session.ts"
import type { ToolCallFlags, ToolListFlags } from "./commands/tool.ts"
import type { TrustFlags } from "./commands/trust.ts"
import { exitCode, reportError } from "./exit.ts"
import type { FormatFlags, PlaceFlags } from "./setup.ts"

/** Reads the command line and runs the command it names. Never throws: errors are told and set the exit code. */
export async function runProgram(args: readonly string[]): Promise<void> {
  const program = createProgram()
  if (args.length === 0) return program.outputHelp()
  try {
    await program.parseAsync([...args], { from: "user" })
  } catch (error) {
    if (error instanceof CommanderError) {
      // commander has told the person already; help and version are no errors.
      process.exitCode = error.exitCode === 0 ? exitCode.finished : exitCode.usage
      return
    }
    reportError(error, { verbose: args.includes("--verbose") })
  }
  const { leave } = await import("./stdout.ts")
  await leave()
}

/** Columns that help is set in: every terminal has them. */
const helpWidth = 80

/** Every command with its flags. What a command does is loaded when it is called. */
function createProgram(): Command {
  const program = new Command("tackle")
    .description("A tool-calling engine for coding agents.")
    .version(process.env.TACKLE_VERSION ?? "development", "-V, --version", "print the version")
    .helpOption("-h, --help", "print help")
    .helpCommand("help [command]", "print help for a command")
    .exitOverride()
    .configureOutput({
      // Making the stream of stdout takes longer than reading the command line; help needs one write.
      writeOut: (text) => writeSync(1, text),
      outputError: (text, write) => write(text.replace(/^error: /, "tackle: ").replace(/\n*$/, "\n")),
      getOutHelpWidth: () => helpWidth,
      getOutHasColors: () => false,
    })
    .configureHelp({ minWidthToWrap: 20 })

  place(program.command("run"))
    .description("give the agent a prompt and let it work")
    .argument("[message...]", 'what to do; "-" or nothing reads stdin')
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
    .option("--timeout <seconds>", "interrupt the run after this time", positive)
    .action(async (message: string[], flags: RunFlags) =>
      (await import("./commands/run.ts")).run(message, flags),
    )

  const tool = program.command("tool").description("list and call tools")
  place(tool.command("list"))
    .description("the tools that the agent and model are offered")
    .option("--all", "every tool, with the reason where one is not offered")
    .option("-m, --model <name>", "for this model")
    .option("--agent <name>", "for this agent")
    .addOption(format())
    .action(async (flags: ToolListFlags) => (await import("./commands/tool.ts")).listTools(flags))
  place(tool.command("schema"))
    .description("a tool's description and JSON Schema, as a model is sent it")
    .argument("<id>", "the tool")
    .action(async (id: string, flags: PlaceFlags) =>
      (await import("./commands/tool.ts")).showSchema(id, flags),
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
      (await import("./commands/tool.ts")).callTool(id, input, flags),
    )

  const permission = program.command("permission").description("explain, test and revoke permissions")
  place(permission.command("check"))
    .description("what the rules say, and why; exit code 0 allow, 10 ask, 11 deny")
    .argument("<permission>", "what is asked for, such as bash, edit or a tool's id")
    .argument("<pattern...>", "the command, path or arguments")
    .option("--agent <name>", "with the rules of this agent")
    .option("--allow <rule>", "allow a permission[:pattern]", collect)
    .option("--deny <rule>", "deny a permission[:pattern]", collect)
    .option("--json", "print JSON")
    .action(async (name: string, patterns: string[], flags: CheckFlags) =>
      (await import("./commands/permission.ts")).checkPermission(name, patterns, flags),
    )
  place(permission.command("test"))
    .description("hold rules against the verdicts that files expect of them")
    .argument("<file...>", "one JSON object a line: rules, permission, pattern, expect")
    .action(async (files: string[], flags: PlaceFlags) =>
      (await import("./commands/permission.ts")).testPermissions(files, flags),
    )
  place(permission.command("list"))
    .description('what was granted with "always" in this project')
    .addOption(format())
    .action(async (flags: FormatFlags) => (await import("./commands/permission.ts")).listGrants(flags))
  place(permission.command("revoke"))
    .description("take grants back")
    .argument("[id...]", "as `permission list` shows them")
    .option("--all", "every grant of this project")
    .action(async (ids: string[], flags: PlaceFlags & { all?: boolean }) =>
      (await import("./commands/permission.ts")).revokeGrants(ids, flags),
    )

  const session = program.command("session").description("show and manage sessions")
  place(session.command("list"))
    .description("the sessions of this project, newest first")
    .option("--all", "of every project")
    .addOption(format())
    .action(async (flags: SessionListFlags) => (await import("./commands/session.ts")).listSessions(flags))
  place(session.command("show"))
    .description("what was said and done in a session")
    .argument("[id]", "the session (default: the last of this project)")
    .addOption(format())
    .action(async (id: string | undefined, flags: FormatFlags) =>
      (await import("./commands/session.ts")).showSession(id, flags),
    )
  place(session.command("export"))
    .description("a whole session as JSON, on stdout")
    .argument("<id>", "the session")
    .option("--sanitize", "without what was said, read, written or run, and without paths")
    .action(async (id: string, flags: SessionExportFlags) =>
      (await import("./commands/session.ts")).exportSession(id, flags),
    )
  place(session.command("import"))
    .description("take an exported session into this project")
    .argument("<file>", 'the file; "-" reads stdin')
    .option("--copy", "with new ids, beside one that is there")
    .action(async (file: string, flags: SessionImportFlags) =>
      (await import("./commands/session.ts")).importSession(file, flags),
    )
  place(session.command("fork"))
    .description("a new session with the history of another")
    .argument("[id]", "the session (default: the last of this project)")
    .option("--at <message>", "only up to the end of this message's turn")
    .action(async (id: string | undefined, flags: SessionForkFlags) =>
      (await import("./commands/session.ts")).forkSession(id, flags),
    )
  place(session.command("delete"))
    .description("remove sessions with everything in them")
    .argument("<id...>", "the sessions")
    .action(async (ids: string[], flags: PlaceFlags) =>
      (await import("./commands/session.ts")).deleteSessions(ids, flags),
    )

  const config = program.command("config").description("show the configuration")
  place(config.command("show"))
    .description("the merged configuration, its files and rules")
    .addOption(format())
    .action(async (flags: FormatFlags) => (await import("./commands/config.ts")).showConfig(flags))
  config
    .command("schema")
    .description("the JSON Schema of a config file, for editors")
    .action(async () => (await import("./commands/config.ts")).showSchema())

  const models = place(program.command("models"))
    .description("the models that are configured, and servers on this machine")
    .addOption(format())
    .option("--forget-tools <model>", "offer tools again to a model whose server refused them (or: all)")
    .action(async (flags: ModelsFlags) => (await import("./commands/models.ts")).listModels(flags))

  models
    .command("check")
    .description("what a live server does with tools; takes the flags of `tackle models`")
    .argument("<model>", "as provider/model")
    .action(async (name: string, _flags: object, command: Command) =>
      (await import("./commands/models-check.ts")).checkModel(name, command.optsWithGlobals()),
    )

  place(program.command("trust"))
    .description("let this project's own config and tools count")
    .argument("[item...]", "only these, as --list names them")
    .option("--yes", "without asking")
    .option("--list", "show what there is, what it enables and what is trusted")
    .option("--revoke", "take the trust back")
    .addOption(format())
    .option("--json", "print JSON")
    .action(async (items: string[], flags: TrustFlags) =>
      (await import("./commands/trust.ts")).trustProject(items, flags),
    )

  program
    .command("gateway")
    .description("serve a chat completions API and give it tool calling")
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
    .action(async (flags: GatewayFlags) => (await import("./commands/gateway.ts")).runGateway(flags))

  place(program.command("doctor"))
    .description("check that everything Tackle needs is there")
    .addOption(format())
    .action(async (flags: FormatFlags) => (await import("./commands/doctor.ts")).checkHealth(flags))

  for (const command of walk(program)) {
    command.exitOverride()
    command.showHelpAfterError(`\`${nameOf(command)} --help\` shows how it is used.`)
  }
  return program
}

/** The flags that every command with a project has. */
function place(command: Command): Command {
  return command
    .option("--dir <path>", "work in this directory (default: here)")
    .option("--trust", "let the project's own config and tools count, this once")
    .option("--verbose", "log to stderr too")
}

function format(): Option {
  return new Option("--format <kind>", "how to print").choices(["text", "json"]).default("text")
}

function collect(value: string, before: string[] = []): string[] {
  return [...before, value]
}

function positive(value: string): number {
  const number = Number(value)
  if (!Number.isSafeInteger(number) || number < 1)
    throw new InvalidArgumentError("It must be a whole number from 1.")
  return number
}

function port(value: string): number {
  const number = Number(value)
  if (value.trim() === "" || !Number.isInteger(number) || number < 0 || number > 65_535)
    throw new InvalidArgumentError("It must be a whole number from 0 to 65535.")
  return number
}

/** As it is typed: `tackle tool call`. */
function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name()
}

function* walk(command: Command): Generator<Command> {
  yield command
  for (const child of command.commands) yield* walk(child)
}
