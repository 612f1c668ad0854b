import type { Attachment } from "../schema/tool-state.ts"
import type { Skill } from "../skill/skill.ts"
import { UsageError } from "../util/errors.ts"
import { nearNames } from "../util/similarity.ts"

/** A named prompt that the user calls with `/name arguments`. */
export interface CommandConfig {
  /**
   * `$ARGUMENTS` and `$1`, `$2` … stand for the arguments, `` !`…` `` for the output of a command, `@path` for a file.
   */
  template: string
  description?: string | undefined
  /** The agent for this prompt. Afterwards the session has its own agent again. */
  agent?: string | undefined
  /** The model for this prompt, as `provider/model`. */
  model?: string | undefined
  /** Runs the agent as a subagent. Default: true if the agent can only be a subagent. */
  subtask?: boolean | undefined
  /** Describes the arguments to the user. */
  argument_hint?: string | undefined
}

/** A command with its name. */
export interface Command extends CommandConfig {
  name: string
  /**
   * Set if the command is not a template. `skill`: loads the skill of this name with the rules of the session. `mcp`:
   * the template is a server's answer, used verbatim. Neither has placeholders.
   */
  origin?: "skill" | "mcp"
}

/** A command with the user's arguments. */
export interface CommandCall extends Command {
  arguments: string
  /** Files that come with the text. */
  attachments?: readonly Attachment[]
}

/** Returns commands and skills sorted by name. A command hides a skill with the same name. */
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
 * Parses a text that starts with `/`: a command, or plain text, possibly with the name that was meant. A path such as
 * `/etc/hosts` is plain text. In names, `/` is equivalent to `:`.
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

/** A piece of a filled template. `quoted` comes from someone else, so `@` mentions nothing in it. */
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
 * Fills in `$ARGUMENTS` and `$1`, `$2` …; the highest number takes all remaining words. If the template has no
 * placeholder, the arguments follow it. Arguments are plain text: a `` !`…` `` in them is not run.
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

/** Matches at the start or after a non-word character. A `!` inside a word has no effect. */
const shellLine = /(?<![\w`])!`([^`\n]+)`/g

/** Splits text into words as a shell does: by white space, except inside quotes. */
export function splitWords(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain ?? "",
  )
}
