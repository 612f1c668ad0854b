import { readFileSync } from "node:fs"
import type { Command } from "commander"
import { findListing, type ToolListing } from "../../registry/registry.ts"
import type { PermissionRequest } from "../../schema/permission.ts"
import { unknownKeys } from "../../tool/unknown-keys.ts"
import { UsageError } from "../../util/errors.ts"
import { repairArguments } from "../../util/repair-json.ts"
import { didYouMean } from "../../util/similarity.ts"
import { oneLine, visible, wrapped } from "../../view/visible.ts"
import { exitCode, interruptible } from "../process/exit.ts"
import { warn } from "../process/notice.ts"
import { atTerminal, canAskHere, clientCanAsk } from "../process/question.ts"
import { printJson, printLine, stdout } from "../process/stdout.ts"
import { answerRequests, requestsOf } from "../run/answer.ts"
import { allowHint } from "../view/allow-hint.ts"
import { openTackle, withTackle } from "../workspace/engine.ts"
import type { RuleFlags } from "../workspace/rules.ts"
import { type FormatFlags, openWorkspace, type WorkspaceFlags } from "../workspace/workspace.ts"
import { collect, formatFlag, jsonFlag, projectFlags } from "./flags.ts"
import { addTypes, newTool } from "./tool-new.ts"

/** Defines `tackle tool` and its subcommands. */
export function defineTool(tool: Command): void {
  projectFlags(tool.command("list"))
    .description("list the tools that are offered to the agent and model")
    .option("--all", "include unavailable tools, with the reason")
    .option("-m, --model <name>", "list the tools offered to this model")
    .option("--agent <name>", "list the tools offered to this agent")
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(listTools)
  projectFlags(tool.command("schema"))
    .description("print a tool's description and JSON Schema, as sent to a model")
    .argument("<id>", "id of the tool")
    .action(showSchema)
  projectFlags(tool.command("call"))
    .description("call a tool without a model")
    .argument("<id>", "id of the tool")
    .argument("[input]", 'arguments as JSON; "-" reads stdin', "{}")
    .option("--agent <name>", "use the rules of this agent")
    .option(
      "--auto",
      "allow each request once, but reject loops, protected files and commands that ask to leave the sandbox",
    )
    .option("--allow <rule>", "allow permission[:pattern] (repeatable)", collect)
    .option("--deny <rule>", "deny permission[:pattern] (repeatable)", collect)
    .option("--sandboxed", "run commands in the sandbox without asking")
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(callTool)
  projectFlags(tool.command("new"))
    .description("create a tool in TypeScript, with a test and types for editors")
    .argument("<name>", "name of the tool")
    .option("--user", "create the tool for every project")
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(newTool)
  projectFlags(tool.command("types"))
    .description("add types for editors to the project's tools and plugins")
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(addTypes)
}

/**
 * Flags for `tackle tool list`. `all` includes unavailable tools. `model` and `agent` default to the values in the
 * config.
 */
export interface ToolListFlags extends FormatFlags {
  all?: boolean
  model?: string
  agent?: string
}

/** Flags for `tackle tool call`. `agent` is the agent whose rules apply. For `auto`, see `AnswerOptions`. */
export interface ToolCallFlags extends FormatFlags, RuleFlags {
  agent?: string
  auto?: boolean
}

/** Runs `tackle tool list`. */
export async function listTools(flags: ToolListFlags): Promise<void> {
  const tools = (await readTools(flags)).filter((tool) => flags.all || tool.offered)
  if (flags.format === "json") return printJson({ tools })
  const width = Math.max(...tools.map(({ id }) => id.length))
  const room = process.stdout.isTTY ? process.stdout.columns - width - 2 : Number.POSITIVE_INFINITY
  for (const tool of tools)
    for (const [index, line] of textOf(tool, room).entries())
      printLine(`${(index === 0 ? tool.id : "").padEnd(width)}  ${line}`)
}

/**
 * Returns the text after the tool's name: a description, cut to one line, or the full reason why a tool is unavailable.
 */
function textOf({ description, offered, reason, source }: ToolListing, room: number): string[] {
  const origin = source === "builtin" ? "" : ` [${source}]`
  return offered
    ? [oneLine(`${firstSentence(description)}${origin}`, room)]
    : wrapped(`unavailable: ${reason}${origin}`, room)
}

/** Runs `tackle tool schema <id>`. */
export async function showSchema(id: string, flags: WorkspaceFlags): Promise<void> {
  const tools = await readTools(flags)
  const tool = findTool(id, tools)
  printJson({ name: tool.id, description: tool.description, parameters: tool.parameters })
}

/** Runs `tackle tool call <id> <json>`, which calls a tool without a model. `-` reads the arguments from stdin. */
export async function callTool(id: string, input: string, flags: ToolCallFlags): Promise<void> {
  await interruptible(async (stopped, interrupt) => {
    const workspace = await openWorkspace(flags)
    const tackle = await openTackle(workspace, flags)
    const asked: PermissionRequest[] = []
    tackle.on("permission.asked", (request) => asked.push(request))
    answerRequests(requestsOf(tackle), {
      auto: flags.auto ?? false,
      questions: canAskHere(workspace.environment) && !flags.auto,
      pause: () => () => {},
      signal: stopped,
      interrupt,
    })
    try {
      const scope = { signal: stopped, agent: flags.agent }
      const tools = await tackle.tools(scope)
      const tool = findTool(id, tools)
      const text = input === "-" ? readFileSync(0, "utf8") : input
      reportUnknownKeys(tool, text)
      const { state } = await tackle.callTool({ tool: id, input: text, ...scope })
      process.exitCode = stopped.aborted ? exitCode.interrupted : codeOf(state)
      if (flags.format === "json") return printJson({ tool: id, ...state })
      if (state.status === "completed") return printLine(stdout.isTTY ? visible(state.output) : state.output)
      warn(state.error)
      const hint = flags.auto || atTerminal() ? undefined : allowHint(asked)
      if (process.exitCode === exitCode.refused && hint !== undefined) warn(hint)
    } finally {
      await tackle.close()
    }
  })
}

/** Warns about unknown arguments. Ignores invalid JSON, because the call reports it. */
function reportUnknownKeys({ id, parameters }: ToolListing, text: string): void {
  const read = repairArguments(text)
  if (!read.ok) return
  for (const { path, near, known } of unknownKeys(parameters, read.value)) {
    const available =
      known.length > 0 ? `Available arguments: ${known.join(", ")}.` : "The tool accepts no arguments."
    const hint = near === undefined ? available : `Did you mean "${near}"?`
    warn(`${id}: unknown argument "${path}". ${hint}`)
  }
}

/** Returns the tool with this id or alias. Throws `UsageError` if no tool has this name. */
function findTool(name: string, tools: readonly ToolListing[]): ToolListing {
  const tool = findListing(name, tools)
  if (tool) return tool
  throw noTool(name, tools)
}

function noTool(id: string, tools: readonly ToolListing[]): UsageError {
  const ids = tools.map((tool) => tool.id)
  const hint = [didYouMean(id, ids), "Run `tackle tool list --all` to list all tools."]
  return new UsageError([`The tool "${id}" does not exist.`, ...hint].filter(Boolean).join(" "))
}

function firstSentence(text: string): string {
  return /^.+?\.(?=\s|$)/s.exec(text)?.[0] ?? text
}

function codeOf(state: { status: string; metadata?: Record<string, unknown> }): number {
  if (state.status === "completed") return exitCode.finished
  switch (state.metadata?.kind) {
    case "refused":
    case "loop":
      return exitCode.refused
    case "malformed":
    case "invalid-arguments":
    case "unknown-tool":
      return exitCode.usage
    default:
      return exitCode.failed
  }
}

function readTools(flags: WorkspaceFlags & { model?: string; agent?: string }): Promise<ToolListing[]> {
  return interruptible(async (signal) => {
    const workspace = await openWorkspace(flags)
    const { model, agent } = flags
    const overrides = { questions: clientCanAsk(workspace.environment) }
    return withTackle(workspace, (tackle) => tackle.tools({ signal, model, agent }), { overrides })
  })
}
