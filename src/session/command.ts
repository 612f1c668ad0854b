import type { Attachment } from "../schema/tool-state.ts"
import type { Skill } from "../skill/skill.ts"
import { UsageError } from "../util/errors.ts"
import { nearNames } from "../util/similarity.ts"

/** A named prompt that the user calls with `/name arguments`. */
export interface CommandConfig {
  /**
   * Text with placeholders: `$ARGUMENTS` and `$1`, `$2` … for the arguments, `` !`…` `` for the output of a shell
   * command, and `@path` for a file.
   */
  template: string
  description?: string | undefined
  /** Agent for this prompt only. Later prompts use the session's previous agent again. */
  agent?: string | undefined
  /** Model for this prompt only, as `provider/model`. */
  model?: string | undefined
  /** Whether the agent runs as a subagent. Default: true if the mode of the agent is `subagent`. */
  subtask?: boolean | undefined
  /** Tells the user which arguments the command expects. */
  argument_hint?: string | undefined
}

/** A command with its name. */
export interface Command extends CommandConfig {
  name: string
  /**
   * Where the command comes from. Undefined for a command with a template. `skill`: the command loads the skill with
   * this name, and the rules of the session apply. `mcp`: an MCP server wrote `template`, which is used verbatim.
   * Commands with an origin have no placeholders.
   */
  origin?: "skill" | "mcp"
}

/** A command with the user's arguments. */
export interface CommandCall extends Command {
  arguments: string
  /** Files that the MCP server returned with the text. */
  attachments?: readonly Attachment[]
}

/** Returns the commands and skills, sorted by name. A command hides a skill with the same name. */
export function listCommands(
  commands: Readonly<Record<string, CommandConfig>>,
  skills: Iterable<Skill> = [],
): Command[] {
  const own: Command[] = Object.entries(commands).map(([name, command]) => ({ name, ...command }))
  const loading = [...skills]
    .filter(({ name }) => !Object.hasOwn(commands, name))
    .map(({ name, description, body }) => ({ name, description, template: body, origin: "skill" as const }))
  return [...own, ...loading].sort((a, b) => (a.name < b.name ? -1 : 1))
}

/**
 * Returns the command that text such as `/name arguments` calls. Any other text, including a path such as `/etc/hosts`,
 * is plain text. For plain text, `near` is the most similar command name, if any. In names, `/` is equivalent to `:`.
 */
export function findCommand(
  text: string,
  commands: readonly Command[],
): { call: CommandCall } | { near?: string } {
  const [, name, given = ""] = /^\/([A-Za-z0-9][\w./:-]*)(?:\s+([\s\S]*))?$/.exec(text.trim()) ?? []
  if (name === undefined) return {}
  const spelled = (known: string) => known.replaceAll("/", ":")
  const found = commands.find((command) => spelled(command.name) === spelled(name))
  if (found) return { call: { ...found, arguments: given.trim() } }
  const [near] = nearNames(
    name,
    commands.map((command) => command.name),
    Math.ceil(name.length / 4),
  )
  return near === undefined ? {} : { near }
}

/** Throws `UsageError` if the command names an unknown agent. */
export function checkCommand({ name, agent }: Command, agents: ReadonlyMap<string, unknown>): void {
  if (agent === undefined || agents.has(agent)) return
  throw new UsageError(
    `The command /${name} names the unknown agent "${agent}". Available: ${[...agents.keys()].join(", ")}.`,
  )
}

/** A piece of an expanded template. A `quoted` piece was written by an MCP server, so its `@` mentions are ignored. */
export type TemplatePiece =
  | { kind: "text" | "quoted"; text: string }
  | { kind: "shell"; command: string }
  | { kind: "skill"; name: string }

/** Splits a command into the pieces that make up its prompt. */
export function commandPieces({ origin, name, template, arguments: given }: CommandCall): TemplatePiece[] {
  if (origin === undefined) return fillTemplate(template, given)
  const said: TemplatePiece =
    origin === "skill" ? { kind: "skill", name } : { kind: "quoted", text: template }
  return given === "" ? [said] : [said, { kind: "text", text: `\n\n${given}` }]
}

/**
 * Replaces `$ARGUMENTS` and `$1`, `$2` … with the arguments. The placeholder with the highest number is replaced with
 * all remaining words. Without placeholders, the arguments are appended to the template. A `` !`…` `` inside the
 * arguments is not run.
 */
export function fillTemplate(template: string, given: string): TemplatePiece[] {
  const words = splitWords(given)
  const places = [...template.matchAll(placeholder)].map(([, number]) => Number(number ?? 0))
  const last = Math.max(0, ...places)
  const fill = (text: string) =>
    text.replace(placeholder, (_, number: string | undefined) => {
      if (number === undefined) return given
      const index = Number(number) - 1
      return index + 1 === last ? words.slice(index).join(" ") : (words[index] ?? "")
    })
  const pieces: TemplatePiece[] = []
  let end = 0
  for (const match of template.matchAll(shellLine)) {
    pieces.push({ kind: "text", text: fill(template.slice(end, match.index)) })
    pieces.push({ kind: "shell", command: fill(match[1] ?? "") })
    end = match.index + match[0].length
  }
  pieces.push({ kind: "text", text: fill(template.slice(end)) })
  if (places.length === 0 && given !== "") pieces.push({ kind: "text", text: `\n\n${given}` })
  return pieces
}

const placeholder = /\$(?:ARGUMENTS\b|([1-9]\d?)(?!\d))/g

/** Matches `` !`…` `` unless a word character or a backtick precedes it. */
const shellLine = /(?<![\w`])!`([^`\n]+)`/g

/** Splits text into words at white space, except within quotes. */
export function splitWords(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain ?? "",
  )
}
