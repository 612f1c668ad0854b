import { writeSync } from "node:fs"
import { Command, CommanderError } from "commander"
import { exitCode, reportError } from "./exit.ts"
import { defineAgent } from "./grammar/agent.ts"
import { defineAuth } from "./grammar/auth.ts"
import { defineConfig } from "./grammar/config.ts"
import { defineDoctor } from "./grammar/doctor.ts"
import { defineGateway } from "./grammar/gateway.ts"
import { defineMcp } from "./grammar/mcp.ts"
import { defineModels } from "./grammar/models.ts"
import { definePermission } from "./grammar/permission.ts"
import { defineRun } from "./grammar/run.ts"
import { defineSession } from "./grammar/session.ts"
import { defineStats } from "./grammar/stats.ts"
import { defineTool } from "./grammar/tool.ts"
import { defineTrust } from "./grammar/trust.ts"

/** Reads the command line and runs the command it names. Never throws: errors are told and set the exit code. */
export async function runProgram(args: readonly string[]): Promise<void> {
  const program = createProgram(args)
  if (args.length === 0) return program.outputHelp()
  try {
    await program.parseAsync(withInnerHelp(program, args), { from: "user" })
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

/** Every command by its name, in the order of the help. */
const grammars: Readonly<Record<string, (program: Command) => void>> = {
  run: defineRun,
  agent: defineAgent,
  tool: defineTool,
  mcp: defineMcp,
  permission: definePermission,
  session: defineSession,
  stats: defineStats,
  config: defineConfig,
  models: defineModels,
  auth: defineAuth,
  gateway: defineGateway,
  trust: defineTrust,
  doctor: defineDoctor,
}

/** The command that is called, with its flags, or all where none is. What it does is loaded when it is called. */
function createProgram(args: readonly string[]): Command {
  const [first = ""] = args
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

  const called = Object.hasOwn(grammars, first) ? [first] : Object.keys(grammars)
  for (const name of called) grammars[name]?.(program)
  for (const command of walk(program)) {
    command.exitOverride()
    const help = `\`${nameOf(command)} --help\` shows how it is used.`
    const behind = command.commands.length > 0 ? misplacedFlag(command, args) : undefined
    command.showHelpAfterError(behind ?? help)
  }
  return program
}

/**
 * `help session export` as `session export --help`, and `help sesion` as `sesion`: commander's `help` reads one name and
 * drops the others, and has no word for one that it does not know.
 */
function withInnerHelp(program: Command, args: readonly string[]): string[] {
  const [first, ...names] = args
  if (first !== "help") return [...args]
  if (names.length === 0 || names[0] === "help") return ["help"]
  let group = program
  for (const [index, name] of names.entries()) {
    if (group.commands.length === 0) break
    const named = group.commands.find((command) => command.name() === name)
    // The group says that it has no such command.
    if (!named) return names.slice(0, index + 1)
    group = named
  }
  return [...names, "--help"]
}

/** What to write where a flag stands before the command that it is for. */
function misplacedFlag(command: Command, args: readonly string[]): string | undefined {
  const words = args.includes("--") ? args.slice(0, args.indexOf("--")) : args
  const flag = words.find((word) => word.startsWith("-"))
  const named = words.filter((word) => !word.startsWith("-"))
  let inner = command.parent ? command.parent : command
  for (const name of named) inner = inner.commands.find((child) => child.name() === name) ?? inner
  const known = inner.options.some(({ long, short }) => flag !== undefined && [long, short].includes(flag))
  return known ? `It goes behind the command: ${nameOf(inner)} ${flag}` : undefined
}

/** As it is typed: `tackle tool call`. */
function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name()
}

function* walk(command: Command): Generator<Command> {
  yield command
  for (const child of command.commands) yield* walk(child)
}
