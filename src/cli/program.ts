import { fstatSync, writeSync } from "node:fs"
import { isatty } from "node:tty"
import { Command, CommanderError, Help } from "commander"
import { exitCode, reportError, untilSettled } from "./process/exit.ts"

/**
 * Parses the command line and runs the command. Never throws: errors are reported on stderr and set the exit code.
 */
export async function runProgram(given: readonly string[]): Promise<void> {
  const command = defaultCommand(given)
  const args = command === undefined ? given : [command, ...given]
  const program = await createProgram(args)
  if (args.length === 0) return program.outputHelp()
  try {
    await untilSettled(() => program.parseAsync(withInnerHelp(program, args), { from: "user" }))
  } catch (error) {
    if (error instanceof CommanderError) {
      // commander has already printed the message. Help and version are not errors.
      process.exitCode = error.exitCode === 0 ? exitCode.finished : exitCode.usage
      return
    }
    reportError(error, {
      verbose: args.includes("--verbose"),
      takesVerbose: takesVerbose(program, args),
    })
  }
  const { exitAfterOutput } = await import("./process/stdout.ts")
  await exitAfterOutput()
}

/**
 * Returns the command for arguments that do not contain one: the interactive terminal if the user can type, `run` if
 * there is a prompt, or undefined. A single word counts as a command, which may be misspelled, because a prompt
 * contains a space.
 */
function defaultCommand(args: readonly string[]): "interactive" | "run" | undefined {
  const [first = "", ...others] = args
  if (["-h", "--help", "-V", "--version"].includes(first) || (first === "" && others.length > 0))
    return undefined
  if (first !== "" && !first.startsWith("-") && !/\s/.test(first)) return undefined
  // Does not use `process.stdin` and `process.stdout`, because creating these streams takes several milliseconds.
  if (isatty(0) && isatty(1)) return "interactive"
  const hasPrompt = args.some((word) => /\s/.test(word)) || hasInput()
  return hasPrompt && !args.some((word) => Object.hasOwn(commands, word)) ? "run" : undefined
}

/** Returns true if stdin is a pipe, a socket or a file, and false for a terminal and for `/dev/null`. */
function hasInput(): boolean {
  try {
    const input = fstatSync(0)
    return input.isFIFO() || input.isSocket() || input.isFile()
  } catch {
    // Stdin is closed.
    return false
  }
}

interface CommandEntry {
  description: string
  /** Loads the function that adds arguments, flags and subcommands. */
  load(): Promise<(command: Command) => void>
}

/** Commands in the order of the help text. A command's file is loaded only when the command is used. */
const commands: Readonly<Record<string, CommandEntry>> = {
  interactive: {
    description: "open the interactive terminal",
    load: async () => (await import("./commands/interactive.ts")).defineInteractive,
  },
  run: {
    description: "run the agent with a prompt",
    load: async () => (await import("./commands/run.ts")).defineRun,
  },
  send: {
    description: "send a prompt to a session, even while it is running",
    load: async () => (await import("./commands/send.ts")).defineSend,
  },
  queue: {
    description: "show and change a session's pending prompts",
    load: async () => (await import("./commands/queue.ts")).defineQueue,
  },
  agent: {
    description: "list, show and create agents",
    load: async () => (await import("./commands/agent.ts")).defineAgent,
  },
  tool: {
    description: "list and call tools",
    load: async () => (await import("./commands/tool.ts")).defineTool,
  },
  mcp: {
    description: "manage MCP servers, or run as one",
    load: async () => (await import("./commands/mcp.ts")).defineMcp,
  },
  permission: {
    description: "explain, test and revoke permissions",
    load: async () => (await import("./commands/permission.ts")).definePermission,
  },
  session: {
    description: "show and manage sessions",
    load: async () => (await import("./commands/session.ts")).defineSession,
  },
  stats: {
    description: "show tokens, cost and calls for this project's sessions",
    load: async () => (await import("./commands/stats.ts")).defineStats,
  },
  db: {
    description: "prepare a PostgreSQL database and import sessions",
    load: async () => (await import("./commands/db.ts")).defineDb,
  },
  config: {
    description: "show the configuration",
    load: async () => (await import("./commands/config.ts")).defineConfig,
  },
  models: {
    description: "list configured models and local model servers",
    load: async () => (await import("./commands/models.ts")).defineModels,
  },
  auth: {
    description: "sign in to model providers",
    load: async () => (await import("./commands/auth.ts")).defineAuth,
  },
  attach: {
    description: "list or follow sessions on a server",
    load: async () => (await import("./commands/attach.ts")).defineAttach,
  },
  serve: {
    description: "serve sessions over HTTP",
    load: async () => (await import("./commands/serve.ts")).defineServe,
  },
  worker: {
    description: "run sessions for servers with --dispatch",
    load: async () => (await import("./commands/worker.ts")).defineWorker,
  },
  web: {
    description: "open the sessions in this directory in a browser",
    load: async () => (await import("./commands/web.ts")).defineWeb,
  },
  gateway: {
    description: "add tool calling to a Chat Completions API",
    load: async () => (await import("./commands/gateway.ts")).defineGateway,
  },
  trust: {
    description: "trust this project's config and tools",
    load: async () => (await import("./commands/trust.ts")).defineTrust,
  },
  doctor: {
    description: "check that everything Tackle needs is available",
    load: async () => (await import("./commands/doctor.ts")).defineDoctor,
  },
  completion: {
    description: "print a script that completes commands in a shell",
    load: async () => {
      const { defineCompletion } = await import("./commands/completion.ts")
      return (command) => defineCompletion(command, () => createProgram([], { all: true }))
    },
  },
}

/** Commands that the help does not list. */
const unlisted = ["help", "interactive"]

/** Width of the help text in columns, in every terminal. */
const helpWidth = 80

/**
 * Creates the program with the name and description of every command. Defines arguments and options only for the
 * command in `args` or, with `all`, for every command. Adds examples only if `args` request help.
 */
export async function createProgram(args: readonly string[], { all = false } = {}): Promise<Command> {
  const program = new Command("tackle")
    .description('An engine for coding agents. "tackle" alone opens the interactive terminal.')
    .usage("[-h | --help] [-V | --version] <command>")
    .version(process.env.TACKLE_VERSION ?? "development", "-V, --version", "print the version")
    .helpOption("-h, --help", "print help")
    .helpCommand("help [command]", "print help for a command")
    .exitOverride()
    .configureOutput({
      // Writes directly, because creating the stdout stream takes longer than parsing the command line.
      writeOut: writeHelp,
      outputError: (text, write) => write(text.replace(/^error: /, "tackle: ").replace(/\n*$/, "\n")),
      getOutHelpWidth: () => helpWidth,
      getOutHasColors: () => false,
    })
    .configureHelp({
      minWidthToWrap: 20,
      visibleCommands: (command) => command.commands.filter((inner) => !unlisted.includes(inner.name())),
      // The usage line shows the program's two options.
      visibleOptions(command) {
        return command.parent ? Help.prototype.visibleOptions.call(this, command) : []
      },
    })

  const used = args.find((word) => Object.hasOwn(commands, word))
  for (const [name, { description, load }] of Object.entries(commands)) {
    const command = program.command(name).description(description)
    if (all || name === used) (await load())(command)
  }
  const wantsHelp = args.some((word) => ["help", "--help", "-h"].includes(word))
  const about = wantsHelp ? (await import("./examples.ts")).examplesOf : () => ""
  for (const command of walk(program)) {
    command.exitOverride()
    const text = about(nameOf(command).replace(/^tackle ?/, ""))
    if (text !== "" && command.parent) command.addHelpText("after", text)
    const misplaced = command.commands.length > 0 ? misplacedFlag(command, args) : undefined
    command.showHelpAfterError(misplaced ?? `Run \`${nameOf(command)} --help\` for usage.`)
  }
  return program
}

/**
 * Turns `help session export` into `session export --help`, and `help sesion` into `sesion`. commander's own `help`
 * reads only the first name and does not report an unknown name.
 */
function withInnerHelp(program: Command, args: readonly string[]): string[] {
  const [first, ...names] = args
  if (first !== "help") return [...args]
  if (names.length === 0 || names[0] === "help") return ["help"]
  let group = program
  for (const [index, name] of names.entries()) {
    if (group.commands.length === 0) break
    const named = group.commands.find((command) => command.name() === name)
    // The group reports the unknown command.
    if (!named) return names.slice(0, index + 1)
    group = named
  }
  return [...names, "--help"]
}

/** Returns an error message with the corrected command if a flag precedes its command. Otherwise returns undefined. */
function misplacedFlag(command: Command, args: readonly string[]): string | undefined {
  const words = args.includes("--") ? args.slice(0, args.indexOf("--")) : args
  const flag = words.find((word) => word.startsWith("-"))
  const named = words.filter((word) => !word.startsWith("-"))
  let inner = command.parent ? command.parent : command
  for (const name of named) inner = inner.commands.find((child) => child.name() === name) ?? inner
  const known = inner.options.some(({ long, short }) => flag !== undefined && [long, short].includes(flag))
  return known ? `Write the flag after the command: ${nameOf(inner)} ${flag}` : undefined
}

/** Returns true if the command in `args`, or one of its parents, has the flag `--verbose`. */
function takesVerbose(program: Command, args: readonly string[]): boolean {
  let command = program
  for (const word of args) command = command.commands.find((child) => child.name() === word) ?? command
  for (let each: Command | null = command; each; each = each.parent)
    if (each.options.some(({ long }) => long === "--verbose")) return true
  return false
}

/** Returns the full name of a command, such as `tackle tool call`. */
function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name()
}

function* walk(command: Command): Generator<Command> {
  yield command
  for (const child of command.commands) yield* walk(child)
}

/** Writes help text. A reader that exits early, as in `tackle run --help | head -1`, is not an error. */
function writeHelp(text: string): void {
  try {
    writeSync(1, text)
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EPIPE")) throw error
  }
}
