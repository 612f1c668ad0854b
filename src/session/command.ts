import type { Attachment } from "../schema/tool-state.ts"
import type { Skill } from "../skill/skill.ts"
import { UsageError } from "../util/errors.ts"
import { nearNames } from "../util/similarity.ts"

/** A prompt that is kept under a name and written as `/name arguments`. */
export interface CommandConfig {
  /**
   * `$ARGUMENTS` and `$1`, `$2` … stand for what follows the name, `` !`…` `` for the output of a command, `@path` for
   * a file.
   */
  template: string
  description?: string | undefined
  /** Works on this prompt; afterwards the session is its own agent's again. */
  agent?: string | undefined
  /** `provider/model`, for this prompt. */
  model?: string | undefined
  /** Handed to the agent as a subagent. Default: where the agent is nothing else. */
  subtask?: boolean | undefined
  /** What follows the name, for people. */
  argument_hint?: string | undefined
}

/** A command by its name. */
export interface Command extends CommandConfig {
  name: string
  /**
   * Whose words they are, where it is no template. `skill`: the skill of this name, loaded by the rules of the session
   * when the command is run. `mcp`: the template is what a server answered, taken as it stands. Without placeholders both.
   */
  origin?: "skill" | "mcp"
}

/** A command with what the person wrote behind its name. */
export interface CommandCall extends Command {
  arguments: string
  /** What comes with the text. */
  attachments?: readonly Attachment[]
}

/** Commands with their names, and a skill as one where no other has its name; sorted by name. */
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
 * What a text beginning with `/` means: a command, or a text like any other, perhaps with a name that was meant. A path
 * such as `/etc/hosts` is a text. In a name `/` is as good as `:`.
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

/** Throws `UsageError` where the command names an agent that does not exist. */
export function checkCommand({ name, agent }: Command, agents: ReadonlyMap<string, unknown>): void {
  if (agent === undefined || agents.has(agent)) return
  throw new UsageError(
    `The command /${name} is for the agent "${agent}", which does not exist. Known: ${[...agents.keys()].join(", ")}.`,
  )
}

/**
 * A piece of what a command says, with its arguments put in. `quoted` is what somebody else wrote: it names no files.
 */
export type TemplatePiece =
  | { kind: "text" | "quoted"; text: string }
  | { kind: "shell"; command: string }
  | { kind: "skill"; name: string }

/** What the command says to the model. */
export function commandPieces({ origin, name, template, arguments: given }: CommandCall): TemplatePiece[] {
  if (origin === undefined) return fillTemplate(template, given)
  const said: TemplatePiece =
    origin === "skill" ? { kind: "skill", name } : { kind: "quoted", text: template }
  return given === "" ? [said] : [said, { kind: "text", text: `\n\n${given}` }]
}

/**
 * The template with what the person wrote in place of `$ARGUMENTS` and `$1`, `$2` …; of these the highest takes all that
 * is left. Where the template has none of them, the arguments follow it. What the arguments hold is text: they bring no
 * `` !`…` `` of their own.
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

/** At the beginning, or after what is no word: a `!` in the middle of one means nothing. */
const shellLine = /(?<![\w`])!`([^`\n]+)`/g

/** Words as a shell separates them: by white space, but for what stands in quotes. */
export function splitWords(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain ?? "",
  )
}
